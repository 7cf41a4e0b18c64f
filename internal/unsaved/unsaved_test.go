package unsaved

import (
	"context"
	"testing"
)

func TestHold(t *testing.T) {
	t.Parallel()
	ctx, w := NewContext(t.Context())
	if w.Held() {
		t.Error("held before any work")
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	first, second := Hold(ctx), Hold(inner)
	first()
	if !w.Held() {
		t.Error("not held while one of two holds")
	}
	second()
	if w.Held() {
		t.Error("held after both have released")
	}
	Hold(t.Context())() // a context without a Work
}
