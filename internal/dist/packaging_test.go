package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	yaml "github.com/goccy/go-yaml"
)

// TestPackagingNamesTheReleasedChecksums writes the Homebrew formula and the conda recipe of a
// release: each names every archive with its checksum. A missing one is an error.
func TestPackagingNamesTheReleasedChecksums(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sums := filepath.Join(dir, "SHA256SUMS")
	var lines []string
	systems := []string{"linux-amd64", "linux-arm64", "darwin-arm64"}
	for i, system := range systems {
		lines = append(lines, fmt.Sprintf("%064x  noether-1.2.3-%s.tar.gz", i+1, system))
	}
	write := func(lines []string) {
		if err := os.WriteFile(sums, []byte(strings.Join(lines, "\n")+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write(lines)
	if err := writePackaging(dir, "1.2.3", sums); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"noether.rb", "recipe.yaml"} {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for i, system := range systems {
			url := "https://github.com/noether-ml/noether/releases/download/v1.2.3/noether-1.2.3-" + system + ".tar.gz"
			_, after, found := strings.Cut(string(raw), url)
			if sum := fmt.Sprintf("%064x", i+1); !found || !strings.Contains(strings.SplitAfterN(after, "\n", 3)[0]+strings.SplitAfterN(after, "\n", 3)[1], sum) {
				t.Errorf("%s: %s is not followed by its checksum", name, url)
			}
		}
	}
	raw, err := os.ReadFile(filepath.Join(dir, "recipe.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var recipe struct {
		Context struct{ Version string }
		Package struct{ Name, Version string }
		Source  []struct{ Then struct{ URL, SHA256 string } }
	}
	if err := yaml.Unmarshal(raw, &recipe); err != nil || recipe.Context.Version != "1.2.3" || recipe.Package.Version != "${{ version }}" || len(recipe.Source) != 3 {
		t.Errorf("%v: %+v", err, recipe)
	}
	write(lines[:2])
	if err := writePackaging(dir, "1.2.3", sums); err == nil || !strings.Contains(err.Error(), "darwin-arm64") {
		t.Errorf("a missing checksum: %v", err)
	}
	if err := writePackaging(dir, "1.2.3-dev", sums); err == nil {
		t.Error("no error for a version that is no release")
	}
}
