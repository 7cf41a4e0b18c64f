package config

import (
	"strings"
	"testing"
	"time"
)

// Some kilobytes of brackets took all memory of the machine.
func TestDeepNestingIsAnError(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"brackets": "a: 1\nb: " + strings.Repeat("[", 200_000),
		"braces":   "a: 1\nb: " + strings.Repeat("{a: ", 50_000),
		"dashes":   "a: 1\n" + strings.Repeat("- ", 100_000) + "x",
		"indented": "a:\n" + strings.Repeat(" ", 2000) + "b: 1\n",
	} {
		start := time.Now()
		_, err := Parse("s.yaml", []byte(text), nil)
		if err == nil || !strings.HasPrefix(err.Error(), "s.yaml:2:") || !strings.Contains(err.Error(), "levels of nesting") {
			t.Errorf("%s: %.200v", name, err)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s took %v", name, took)
		}
	}
	if _, err := Parse("s.yaml", []byte(strings.Repeat("- [1, 2] # [[[\n", 10)), nil); err != nil {
		t.Error(err)
	}
}
