package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// A project is the table project of python/pyproject.toml, from which the wheel takes its metadata.
type project struct {
	Name, Description string
	RequiresPython    string `toml:"requires-python"`
	License           string // an SPDX expression
	Keywords          []string
	Classifiers       []string
	URLs              map[string]string
	Scripts           map[string]string
	Dependencies      []string
	Optional          map[string][]string `toml:"optional-dependencies"`
}

// readProject reads a pyproject.toml. A key that the wheel would leave out is an error.
func readProject(path string) (project, error) {
	var file struct {
		Project struct {
			project
			Version string // which the program knows, with its commit
		}
		BuildSystem any `toml:"build-system"`
		Tool        any
	}
	about, err := toml.DecodeFile(path, &file)
	if err != nil {
		return project{}, fmt.Errorf("%s: %w", path, err)
	}
	for _, key := range about.Undecoded() {
		if key[0] == "project" {
			return project{}, fmt.Errorf("%s: the key %s is not one that becomes metadata of the wheel: add it in internal/dist/project.go", path, key)
		}
	}
	return file.Project.project, nil
}

// metadata returns the fields of METADATA, after which comes the readme.
func (p project) metadata(version string, licences []string) []byte {
	var out bytes.Buffer
	field := func(name, value string) { fmt.Fprintf(&out, "%s: %s\n", name, value) }
	field("Metadata-Version", "2.4")
	field("Name", p.Name)
	field("Version", version)
	field("Summary", p.Description)
	field("License-Expression", p.License)
	for _, file := range licences {
		field("License-File", file)
	}
	if len(p.Keywords) > 0 {
		field("Keywords", strings.Join(p.Keywords, ","))
	}
	for _, c := range p.Classifiers {
		field("Classifier", c)
	}
	for _, name := range slices.Sorted(maps.Keys(p.URLs)) {
		field("Project-URL", name+", "+p.URLs[name])
	}
	field("Requires-Python", p.RequiresPython)
	for _, d := range p.Dependencies {
		field("Requires-Dist", d)
	}
	for _, extra := range slices.Sorted(maps.Keys(p.Optional)) {
		field("Provides-Extra", extra)
		for _, d := range p.Optional[extra] {
			field("Requires-Dist", fmt.Sprintf("%s; extra == '%s'", d, extra))
		}
	}
	field("Description-Content-Type", "text/markdown")
	out.WriteByte('\n')
	return out.Bytes()
}

// entryPoints returns the file entry_points.txt, from which installers make the scripts.
func (p project) entryPoints() []byte {
	out := []byte("[console_scripts]\n")
	for _, name := range slices.Sorted(maps.Keys(p.Scripts)) {
		out = fmt.Appendf(out, "%s = %s\n", name, p.Scripts[name])
	}
	return out
}
