package config

import "testing"

// TestNearest checks which known word, if any, is suggested for a misspelt word. The number of
// letters to change must be small, for short words too.
func TestNearest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ word, known, want string }{
		{"lable", "label", "label"}, {"labels", "label", "label"}, {"dta", "data", "data"}, {"dato", "data", "data"},
		{"tow", "two", "two"}, {"y2", "y", "y"}, {"Data", "data", "data"},
		{"ab", "on", ""}, {"x", "y", ""}, {"quite", "label", ""}, {"abc", "xyz", ""},
	} {
		if got := Nearest(c.word, []string{c.known}); got != c.want {
			t.Errorf("Nearest(%q, [%q]) = %q, want %q", c.word, c.known, got, c.want)
		}
	}
}
