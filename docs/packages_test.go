package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/noether-ml/noether/"

// A goPackage is what the files of a folder, tests apart, say of themselves.
type goPackage struct {
	command bool
	comment string   // the package's
	imports []string // of this module, without its name
}

// packages are those of the module, by folder.
func packages(t *testing.T) map[string]*goPackage {
	t.Helper()
	found := map[string]*goPackage{}
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); name == "node_modules" || name == "testdata" || name != ".." && strings.HasPrefix(name, ".") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		folder := path.Clean(strings.TrimPrefix(filepath.ToSlash(filepath.Dir(file)), "../"))
		p := found[folder]
		if p == nil {
			p = &goPackage{command: parsed.Name.Name == "main"}
			found[folder] = p
		}
		p.comment += parsed.Doc.Text()
		for _, i := range parsed.Imports {
			name, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			if own, ok := strings.CutPrefix(name, module); ok && !slices.Contains(p.imports, own) {
				p.imports = append(p.imports, own)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 50 {
		t.Fatalf("%d packages were found; the walk that finds them has gone wrong", len(found))
	}
	return found
}

// hidden reports whether a package is not for users of the library.
func hidden(name string) bool {
	parts := strings.Split(name, "/")
	return slices.Contains(parts, "internal") || slices.Contains([]string{"onnx/pb", "ort/orttest", "cluster/slurmtest"}, name)
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	t.Parallel()
	for name, p := range packages(t) {
		if want := "Package " + path.Base(name) + " "; !p.command && !strings.HasPrefix(p.comment, want) {
			t.Errorf("%s: the comment of the package starts %.40q", name, p.comment)
		}
	}
}

// The table of levels names every public package, and none imports from its own level or one below it.
func TestPackagesImportFromAbove(t *testing.T) {
	t.Parallel()
	_, table, ok := strings.Cut(page(t, "reference/library.md"), "A package imports only packages that stand above it here")
	if !ok {
		t.Fatal("reference/library.md has no table of levels")
	}
	table, _, _ = strings.Cut(table, "\n\nEach ")
	level := map[string]int{}
	for n, line := range strings.Split(table, "\n") {
		for _, m := range regexp.MustCompile("`([a-z/]+)`").FindAllStringSubmatch(line, -1) {
			level[m[1]] = n
		}
	}
	delete(level, "internal")
	all := packages(t)
	for name := range level {
		if all[name] == nil {
			t.Errorf("there is no package %s", name)
		}
	}
	for name, p := range all {
		if p.command || hidden(name) {
			continue
		}
		own, listed := level[name]
		if !listed {
			t.Errorf("reference/library.md does not say on which level %s stands", name)
		}
		for _, from := range p.imports {
			if !hidden(from) && level[from] >= own {
				t.Errorf("%s imports %s, which does not stand above it", name, from)
			}
		}
	}
}
