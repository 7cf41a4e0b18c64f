package main

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/release"
)

//go:embed packaging/*.tmpl
var packaging embed.FS

// A released version is what the templates of packaging/ name: the archives and their checksums.
type released struct {
	Version string
	sums    map[string]string // SHA-256 by file name
}

var sumLine = regexp.MustCompile(`^([0-9a-f]{64})  (\S+)$`)

// readSums reads a file SHA256SUMS.
func readSums(path string) (map[string]string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		match := sumLine.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		if match == nil {
			return nil, fmt.Errorf("%s: %q is no line of sha256sum", path, line)
		}
		sums[match[2]] = match[1]
	}
	return sums, nil
}

func (r released) file(system string) string {
	return release.Command + "-" + r.Version + "-" + system + ".tar.gz"
}

// URL returns the address of the archive for a system, such as linux-amd64.
func (r released) URL(system string) string {
	return "https://github.com/noether-ml/noether/releases/download/v" + r.Version + "/" + r.file(system)
}

// Sum returns the checksum of the archive for a system.
func (r released) Sum(system string) (string, error) {
	sum := r.sums[r.file(system)]
	if sum == "" {
		return "", fmt.Errorf("SHA256SUMS has no %s", r.file(system))
	}
	return sum, nil
}

// writePackaging writes the files of package managers, which name the checksums of a release.
func writePackaging(out, version, sums string) error {
	if strings.Contains(version, "-") {
		return fmt.Errorf("%s is no release: set the version first", version)
	}
	known, err := readSums(sums)
	if err != nil {
		return err
	}
	all, err := template.ParseFS(packaging, "packaging/*.tmpl")
	if err != nil {
		return err
	}
	for _, t := range all.Templates() {
		var b bytes.Buffer
		if err := t.Execute(&b, released{version, known}); err != nil {
			return err
		}
		path := filepath.Join(out, strings.TrimSuffix(t.Name(), ".tmpl"))
		if err := atomicfile.Write(path, b.Bytes()); err != nil {
			return err
		}
		fmt.Println(path)
	}
	return nil
}
