package unsaved

import (
	"context"
	"testing"
)

// TestHold checks that Held, which reports whether there is work that has not been saved, is true
// from the first call of Hold to the last release.
func TestHold(t *testing.T) {
	t.Parallel()
	ctx, w := NewContext(t.Context())
	if w.Held() {
		t.Error("Held() before any call of Hold, want false")
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	releaseFirst, releaseSecond := Hold(ctx), Hold(inner)
	releaseFirst()
	if !w.Held() {
		t.Error("not Held() after one of two releases, want true")
	}
	releaseSecond()
	if w.Held() {
		t.Error("Held() after both releases, want false")
	}
	Hold(t.Context())() // a context without a Work: does nothing
}
