package state

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// A Loader returns the state that an earlier run saved, or nil if there is none.
type Loader interface {
	Load() (io.ReadCloser, error)
}

// A Checkpoint stores the state of work that can be interrupted.
type Checkpoint interface {
	Loader
	// Save replaces the saved state by what write writes, completely or not at all. It may call
	// write more than once; write must write the same bytes each time. The state is streamed, not
	// buffered, unless the checkpoint is in memory.
	Save(write func(io.Writer) error) error
}

// Due reports whether a checkpoint is not nil and wants to be saved now: some save at intervals.
func Due(c Checkpoint) bool {
	at, paced := c.(interface{ Due() bool })
	return c != nil && (!paced || at.Due())
}

// Save saves the state that code writes. kind and version are as for Load. Without a checkpoint,
// nil, it does nothing.
func Save(to Checkpoint, kind string, version int, code func(*Codec)) error {
	if to == nil {
		return nil
	}
	return to.Save(func(out io.Writer) error { return Stream(out, kind, version, code) })
}

// Load calls code to read the saved state, if there is one. kind and version are those of the
// state's format, as for Unmarshal: kind names what wrote it, such as "probe". A state that code
// finds to be of another job (other data or settings) by Codec.Matches is ignored. Of others Load
// checks that they are complete and unchanged.
func Load(from Loader, kind string, version int, code func(*Codec)) error {
	if from == nil {
		return nil
	}
	data, err := from.Load()
	if err != nil || data == nil {
		return err
	}
	defer data.Close()
	c, err := open(data, kind, version)
	if err == nil {
		if code(c); errors.Is(c.err, errOther) {
			return nil
		}
		err = c.finish()
	}
	if err != nil {
		return fmt.Errorf("reading the checkpoint: %w", err)
	}
	return nil
}

// A Part is the Checkpoint of a part of a job, such as the current one of several searches. The
// state of the job holds what Code writes, and after it the state of the part.
type Part struct {
	Store   Checkpoint // of the job; may be nil
	Kind    string
	Version int
	Code    func(*Codec)
	loaded  []byte
}

// Restore loads the state of the job.
func (p *Part) Restore() error {
	return Load(p.Store, p.Kind, p.Version, func(c *Codec) {
		if p.Code(c); !c.Failed() {
			c.Values(&p.loaded)
		}
	})
}

// Load returns the state of the part that Restore has loaded, or nil if there is none.
func (p *Part) Load() (io.ReadCloser, error) {
	if len(p.loaded) == 0 {
		return nil, nil
	}
	return io.NopCloser(bytes.NewReader(p.loaded)), nil
}

// Save replaces the state of the part, and writes it with that of the job.
func (p *Part) Save(write func(io.Writer) error) error {
	p.loaded = nil // the part has read it
	return Save(p.Store, p.Kind, p.Version, func(c *Codec) {
		p.Code(c)
		c.Nested(write)
	})
}

// End saves the state of the job without that of a part, which has ended.
func (p *Part) End() error { return p.Save(func(io.Writer) error { return nil }) }
