package open

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestExpandRanges checks the expansion of braces in the name of a series of files: {08..11} stands
// for numbers and {a,b} for alternatives.
func TestExpandRanges(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"a.tar":              {"a.tar"},
		"v-{08..11}.tar":     {"v-08.tar", "v-09.tar", "v-10.tar", "v-11.tar"},
		"{a,b}/{0..1}":       {"a/0", "a/1", "b/0", "b/1"},
		"x{3..3}":            {"x3"},
		"https://h/{1..2}?q": {"https://h/1?q", "https://h/2?q"},
	} {
		if got, err := expandRanges(name); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	for name, want := range map[string]string{
		"a{1..2": "no closing brace", "a{5..2}": "not a range", "a{x..y}": "not a range", "a{0..99999999}": "more than", "{0..999}{0..999}": "more than",
	} {
		if _, err := expandRanges(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v does not contain %q", name, err, want)
		}
	}
}

// TestFindFiles checks that folders and patterns stand for their .tar files in order, and that
// characters of patterns in the name of an existing folder have no special meaning.
func TestFindFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a [b]")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"2.tar", "1.tar", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	both := []string{filepath.Join(dir, "1.tar"), filepath.Join(dir, "2.tar")}
	for path, want := range map[string][]string{
		dir:                         both,
		filepath.Join(dir, "2.tar"): both[1:],
		filepath.Join(filepath.Dir(dir), "a*", "?.tar"): both,
	} {
		if got, err := new(Files).findFiles(t.Context(), path, ".tar"); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", path, got, err, want)
		}
	}
}
