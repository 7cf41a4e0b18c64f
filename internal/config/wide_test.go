package config

import (
	"fmt"
	"strings"
	"testing"
)

// TestWideMappings checks that a YAML mapping of more than maxKeys (5,000) keys is refused, while
// long lists and many small mappings are not. The error has the line of the first key too many.
func TestWideMappings(t *testing.T) {
	t.Parallel()
	keys := func(n int, indent string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%skey%d: %d\n", indent, i, i)
		}
		return b.String()
	}
	for _, c := range []struct {
		name, text, want string
	}{
		{"200,000 keys", keys(200_000, ""), "many.yaml:5001:1: a mapping of more than 5000 keys"},
		{"keys below a key", "top:\n" + keys(6000, "  "), "many.yaml:5002:1: a mapping of more than 5000 keys"},
		{"keys of an item", "- first: 0\n" + keys(6000, "  "), "many.yaml:5001:1: a mapping of more than 5000 keys"},
		{"keys with comments between", strings.ReplaceAll(keys(6000, ""), "\n", "\n\n # a: b\n"), "a mapping of more than 5000 keys"},
		{"keys without values", strings.Repeat("a:\n", 6000), "a mapping of more than 5000 keys"},
		{"many small mappings", strings.Repeat("- a: 1\n  b: {c: 2}\n", 6000), ""},
		{"many items below a key", "models:\n" + strings.Repeat("- a: 1\n  b:\n    c: 2\n", 6000), ""},
		{"a long list", strings.Repeat("- a\n", 6000), ""},
		{"maxKeys keys", keys(maxKeys, ""), ""},
	} {
		_, err := Parse("many.yaml", []byte(c.text), nil)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
