package terminal

import "testing"

// TestShortLabel checks that no number is cut: an interval is left out as a whole.
func TestShortLabel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		label string
		width int
		want  string
	}{
		{"0.807 [0.800, 0.815]", 20, "0.807 [0.800, 0.815]"},
		{"0.807 [0.800, 0.815]", 14, "0.807"},
		{"a [model]", 9, "a [model]"},
		{"a model [of two]", 8, "a m…two]"},
	} {
		if got := shortLabel(c.label, c.width); got != c.want {
			t.Errorf("%q in %d columns is %q, want %q", c.label, c.width, got, c.want)
		}
	}
}
