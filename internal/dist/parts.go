package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// A part is third-party software that the program or its packages (Python wheel, archive) contain.
type part struct {
	name, version string
	purl          string // its package URL, such as pkg:npm/vega@6.4.0
	licence       string // its SPDX identifier; "" if its package states none
	folder        string // with the texts of its licence
	text          []byte // of its licence; nil: read from folder
}

// parts are the parts of a package, sorted by name.
type parts []part

// listParts lists the third-party software in the program (modules of Go, packages of npm in the
// JavaScript of its HTML reports) and beside it (ONNX Runtime, of the given version).
func listParts(info *buildinfo.BuildInfo, onnxruntime string) (parts, error) {
	golang := strings.TrimPrefix(info.GoVersion, "go")
	root, err := output("go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	all := parts{
		{name: "Go", version: golang, purl: "pkg:golang/std@" + golang, licence: "BSD-3-Clause", folder: strings.TrimSpace(string(root))},
		{name: "ONNX Runtime", version: onnxruntime, purl: "pkg:npm/onnxruntime-node@" + onnxruntime, licence: "MIT", text: runtimeLicence},
	}
	folders, err := moduleFolders(info)
	if err != nil {
		return nil, err
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		all = append(all, part{name: m.Path, version: m.Version, purl: "pkg:golang/" + m.Path + "@" + m.Version, folder: folders[m.Path]})
	}
	packages, err := npmPackages(filepath.Join("internal", "report", "html", "web"))
	if err != nil {
		return nil, err
	}
	all = append(all, packages...)
	slices.SortFunc(all, func(a, b part) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// moduleFolders returns the folders in which the Go command keeps the modules of a program, by
// module path.
func moduleFolders(info *buildinfo.BuildInfo) (map[string]string, error) {
	args := []string{"list", "-m", "-f", "{{.Path}}\t{{.Dir}}"}
	for _, m := range info.Deps {
		args = append(args, m.Path)
	}
	listed, err := output("go", args...)
	if err != nil {
		return nil, err
	}
	folders := map[string]string{}
	for line := range strings.Lines(string(listed)) {
		name, folder, _ := strings.Cut(strings.TrimSpace(line), "\t")
		folders[name] = folder
	}
	return folders, nil
}

// npmPackages lists the npm packages in the JavaScript bundle that is built in a folder: those of
// its package-lock.json without the ones for development.
func npmPackages(folder string) (parts, error) {
	raw, err := os.ReadFile(filepath.Join(folder, "package-lock.json"))
	if err != nil {
		return nil, err
	}
	var lock struct {
		Packages map[string]struct {
			Version, License string
			Dev              bool
		}
	}
	if err := json.Unmarshal(raw, &lock); err != nil {
		return nil, fmt.Errorf("%s: %w", folder, err)
	}
	var all parts
	for location, p := range lock.Packages {
		if location == "" || p.Dev {
			continue
		}
		name := location[strings.LastIndex(location, "node_modules/")+len("node_modules/"):]
		all = append(all, part{name: name, version: p.Version, purl: "pkg:npm/" + strings.Replace(name, "@", "%40", 1) + "@" + p.Version,
			licence: p.License, folder: filepath.Join(folder, filepath.FromSlash(location))})
	}
	return all, nil
}

// licenceFile matches the names of files with licences and notices, which must accompany copies of
// the software.
var licenceFile = regexp.MustCompile(`(?i)^((un)?licen[cs]e|copying|notice|patents)([-._].*)?$`)

// texts returns the texts of a part's licence, one after the other; nil if its folder has none but
// the identifier of its licence is known.
func (p part) texts() ([]byte, error) {
	if p.text != nil {
		return p.text, nil
	}
	entries, err := os.ReadDir(p.folder)
	if err != nil {
		return nil, fmt.Errorf("the licence of %s: %w (npm ci in internal/report/html/web installs packages of npm)", p.name, err)
	}
	var out []byte
	for _, e := range entries {
		if e.IsDir() || !licenceFile.MatchString(e.Name()) {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(p.folder, e.Name()))
		if err != nil {
			return nil, err
		}
		out = append(append(out, bytes.TrimSpace(raw)...), '\n')
	}
	if out == nil && p.licence == "" {
		return nil, fmt.Errorf("%s %s has no licence in %s", p.name, p.version, p.folder)
	}
	return out, nil
}

// notices returns the licences of all parts as a text.
func (all parts) notices() ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, "Noether contains the work of others, under the licences below.\n")
	for _, p := range all {
		text, err := p.texts()
		if err != nil {
			return nil, err
		}
		if text == nil {
			text = []byte("Licence: " + p.licence + "\n")
		}
		fmt.Fprintf(&out, "\n%s\n%s %s\n\n%s", strings.Repeat("-", 80), p.name, p.version, text)
	}
	return out.Bytes(), nil
}

// sbom returns the list of all parts, a software bill of materials in the JSON format of CycloneDX.
// It has no time and no random number, so that builds are reproducible.
func (all parts) sbom(version string) ([]byte, error) {
	bom := cdx.NewBOM()
	root := "pkg:golang/github.com/noether-ml/noether@" + version
	bom.Metadata = &cdx.Metadata{Component: &cdx.Component{BOMRef: root, Type: cdx.ComponentTypeApplication, Name: "noether", Version: version,
		PackageURL: root, Licenses: &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}}}}
	var components []cdx.Component
	var refs []string
	for _, p := range all {
		c := cdx.Component{BOMRef: p.purl, Type: cdx.ComponentTypeLibrary, Name: path.Clean(p.name), Version: p.version, PackageURL: p.purl}
		if p.licence != "" {
			c.Licenses = &cdx.Licenses{{Expression: p.licence}}
		}
		components, refs = append(components, c), append(refs, p.purl)
	}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: root, Dependencies: &refs}}
	var out bytes.Buffer
	err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return out.Bytes(), err
}
