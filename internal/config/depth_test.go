package config

import (
	"strings"
	"testing"
)

// TestDeepNestingIsAnError checks that deep nesting in YAML, for which the parser would take all
// memory of the machine, is an error with its position, line 2.
func TestDeepNestingIsAnError(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"brackets": "a: 1\nb: " + strings.Repeat("[", 200_000),
		"braces":   "a: 1\nb: " + strings.Repeat("{a: ", 50_000),
		"dashes":   "a: 1\n" + strings.Repeat("- ", 100_000) + "x",
		"indented": "a:\n" + strings.Repeat(" ", 2000) + "b: 1\n",
	} {
		_, err := Parse("s.yaml", []byte(text), nil)
		if err == nil || !strings.HasPrefix(err.Error(), "s.yaml:2:") || !strings.Contains(err.Error(), "levels of nesting") {
			t.Errorf("%s: error %.200v, want one about nesting in line 2", name, err)
		}
	}
	// Brackets in comments do not count.
	if _, err := Parse("s.yaml", []byte(strings.Repeat("- [1, 2] # [[[\n", 10)), nil); err != nil {
		t.Error(err)
	}
}
