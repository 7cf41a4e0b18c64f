package config

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestDeepNestingIsAnError checks that deep nesting in YAML is an error with its position, line 2,
// and takes neither long nor all memory.
func TestDeepNestingIsAnError(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"brackets": "a: 1\nb: " + strings.Repeat("[", 200_000),
		"braces":   "a: 1\nb: " + strings.Repeat("{a: ", 50_000),
		"closed":   "a: 1\nb: " + strings.Repeat("[", 200) + strings.Repeat("]", 200),
		"dashes":   "# dashes\n" + strings.Repeat("- ", 100_000) + "x",
	} {
		_, err := Parse("s.yaml", []byte(text), nil)
		if err == nil || !strings.HasPrefix(err.Error(), "s.yaml:2:") || !strings.Contains(err.Error(), "levels of nesting") {
			t.Errorf("%s: error %.200v, want one about nesting in line 2", name, err)
		}
	}
	for _, text := range []string{
		strings.Repeat("- [1, 2] # [[[\n", 10), // brackets in comments do not count
		"a:\n" + strings.Repeat(" ", 2000) + "b: 1\n",
	} {
		if _, err := Parse("s.yaml", []byte(text), nil); err != nil {
			t.Error(err)
		}
	}
}

// TestWideMappings checks that the time to parse a mapping grows in proportion to its keys: the
// time of a parser whose time grows with their square would be minutes.
func TestWideMappings(t *testing.T) {
	t.Parallel()
	const keys = 200_000
	var text strings.Builder
	for i := range keys {
		fmt.Fprintf(&text, "key%d: %d\n", i, i)
	}
	start := time.Now()
	n, err := Parse("many.yaml", []byte(text.String()), nil)
	if err != nil || len(n.Pairs) != keys || n.Pairs[keys-1].Value.Int != keys-1 {
		t.Errorf("%d keys, error %v", len(n.Pairs), err)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("parsing took %v", took)
	}
}
