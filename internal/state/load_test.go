package state

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// saved is what a checkpoint holds; nil where nothing was saved.
type saved []byte

func (s saved) Load() (io.ReadCloser, error) {
	if s == nil {
		return nil, nil
	}
	return io.NopCloser(bytes.NewReader(s)), nil
}

type unreadable struct{ error }

func (u unreadable) Load() (io.ReadCloser, error) { return nil, u.error }

func TestLoad(t *testing.T) {
	t.Parallel()
	w := NewWriter("job", 1)
	w.String("mine")
	w.Int(7)
	whole := saved(w.Bytes())
	altered := bytes.Clone(whole)
	altered[len(altered)-5]++ // of the number
	gone := errors.New("the disk is gone")
	for _, c := range []struct {
		name string
		from Loader
		kind string
		job  string
		want int    // 0: nothing is taken over
		err  string // a part of the error
	}{
		{"whole", whole, "job", "mine", 7, ""},
		{"nothing", saved(nil), "job", "mine", 0, ""},
		{"another job", whole, "job", "yours", 0, ""},
		{"another kind", whole, "pair", "mine", 0, `reading the checkpoint: a state of "job"`},
		{"cut short", whole[:len(whole)-3], "job", "mine", 7, "cut short or altered"},
		{"altered", saved(altered), "job", "mine", 7 + 1<<56, "cut short or altered"},
		{"unreadable", unreadable{gone}, "job", "mine", 0, "the disk is gone"},
	} {
		got := 0
		err := Load(c.from, c.kind, 1, func(r *Reader) bool {
			if r.String() != c.job {
				return false
			}
			got = r.Int()
			return true
		})
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %d and %v, want %d and %q", c.name, got, err, c.want, c.err)
		}
	}
}
