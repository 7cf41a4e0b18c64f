package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestModuleCommit checks that the commit is found in pseudo-versions of Go modules, which end in
// the time and the hash of a commit, and in no others.
func TestModuleCommit(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"": "", "(devel)": "", "v0.1.0": "", "v0.1.0-rc1": "",
		"v0.0.0-20261127041500-5e7a483c71f0": "5e7a483c71f0", "v0.1.0-rc1.0.20261127041500-5e7a483c71f0": "5e7a483c71f0",
	} {
		if got := moduleCommit(version); got != want {
			t.Errorf("the commit of version %q is %q, want %q", version, got, want)
		}
	}
}

// TestManuals checks the files that packages of the program install: manual pages and shell
// completions, each by a text that it contains.
func TestManuals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := writeManuals(newRoot(), dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"man/man1/noether.1":                     "noether-inspect(1)",
		"man/man1/noether-inspect.1":             "List a model",
		"bash-completion/completions/noether":    "__start_noether",
		"zsh/site-functions/_noether":            "#compdef noether",
		"fish/vendor_completions.d/noether.fish": "complete -c noether",
	} {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %q: %v", name, want, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "man", "man1", "noether-manuals.1")); err == nil {
		t.Error("the hidden command manuals has a manual page")
	}
}
