// Package unsaved tells a program that is about to exit whether work remains to be saved.
//
// The program puts a Work into its context. Code that holds unsaved work, and saves it when the
// context ends, calls Hold. After a signal the program waits until nothing is held.
package unsaved

import (
	"context"
	"sync/atomic"
)

// A Work counts the parts of a program that hold unsaved work.
type Work struct{ holders atomic.Int32 }

type key struct{}

// NewContext returns a context with a new Work.
func NewContext(ctx context.Context) (context.Context, *Work) {
	w := &Work{}
	return context.WithValue(ctx, key{}, w), w
}

// Hold states that the caller has work which it saves when ctx ends. The caller calls release
// once, when the work is saved. Without a Work in ctx, Hold does nothing.
func Hold(ctx context.Context) (release func()) {
	w, ok := ctx.Value(key{}).(*Work)
	if !ok {
		return func() {}
	}
	w.holders.Add(1)
	return func() { w.holders.Add(-1) }
}

// Held reports whether a holder has not released its work yet.
func (w *Work) Held() bool { return w.holders.Load() > 0 }
