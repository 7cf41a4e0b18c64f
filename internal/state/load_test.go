package state

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// saved is a Loader of a state (saved, unfinished work) in memory; nil if nothing was saved.
type saved []byte

func (s saved) Load() (io.ReadCloser, error) {
	if s == nil {
		return nil, nil
	}
	return io.NopCloser(bytes.NewReader(s)), nil
}

// unreadable is a Loader that returns an error.
type unreadable struct{ error }

func (u unreadable) Load() (io.ReadCloser, error) { return nil, u.error }

// TestLoad loads a state of the kind "job" (the kind names what wrote the state) and version 1. It
// holds the job's name and the number 7. A state of another job is ignored.
func TestLoad(t *testing.T) {
	t.Parallel()
	complete := saved(written(t, "job", func(c *Codec) {
		name, number := "this job", 7
		c.Values(&name, &number)
	}))
	altered := bytes.Clone(complete)
	altered[len(altered)-5]++ // the highest byte of the number: the checksum is the last four bytes
	diskError := errors.New("disk failure")
	for _, c := range []struct {
		name string
		from Loader
		kind string
		job  string
		want int    // the number read; 0 if none was read
		err  string // a part of the error
	}{
		{"complete", complete, "job", "this job", 7, ""},
		{"nothing", saved(nil), "job", "this job", 0, ""},
		{"another job", complete, "job", "other job", 0, ""},
		{"another kind", complete, "pair", "this job", 0, `reading the checkpoint: the state is of "job"`},
		{"cut short", complete[:len(complete)-3], "job", "this job", 7, "cut short or altered"},
		{"altered", saved(altered), "job", "this job", 7 + 1<<56, "cut short or altered"},
		{"unreadable", unreadable{diskError}, "job", "this job", 0, "disk failure"},
	} {
		got := 0
		err := Load(c.from, c.kind, 1, func(r *Codec) {
			if r.Matches(c.job) {
				r.Values(&got)
			}
		})
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %d and %v, want %d and %q", c.name, got, err, c.want, c.err)
		}
	}
}
