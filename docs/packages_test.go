package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/noether-ml/noether/"

// A goPackage describes the package in a folder, without its tests.
type goPackage struct {
	command bool // package main
	comment string
	imports []string // packages of this module, by folder
	foreign []string // packages of other modules and of the standard library
}

// packages returns the packages of the module, by folder.
func packages(t *testing.T) map[string]*goPackage {
	t.Helper()
	found := map[string]*goPackage{}
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			// internal/testdata is a package; other folders testdata hold no packages.
			if name := d.Name(); name == "node_modules" || name == "testdata" && filepath.Base(filepath.Dir(file)) != "internal" || name != ".." && strings.HasPrefix(name, ".") {
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
		folder := path.Clean(strings.TrimPrefix(filepath.ToSlash(filepath.Dir(file))+"/", "../"))
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
			own, ok := strings.CutPrefix(name, module)
			switch {
			case !ok:
				p.foreign = append(p.foreign, name)
			case !slices.Contains(p.imports, own):
				p.imports = append(p.imports, own)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 50 {
		t.Fatalf("only %d packages were found", len(found))
	}
	return found
}

func TestPackageComments(t *testing.T) {
	t.Parallel()
	for name, p := range packages(t) {
		if want := "Package " + packageName(name) + " "; !p.command && !strings.HasPrefix(p.comment, want) {
			t.Errorf("%s: the package comment starts with %.40q, want %q", name, p.comment, want)
		}
	}
}

// packageName returns the name of the package in a folder; "." is the root.
func packageName(folder string) string {
	if folder == "." {
		return "noether"
	}
	return path.Base(folder)
}

// order lists the packages of the module. A package imports only packages that come before it. The
// commands and what only they import come last.
var order = strings.Fields(`
	tensor
	internal/release
	measure/decoded
	measure
	engine engine/enginetest
	internal/seed internal/filesys internal/filelock internal/tempfolder internal/unsaved internal/supervise internal/atomicfile internal/filestate internal/powerloss internal/state internal/plainjson internal/spelling internal/machine internal/chroma internal/dynlib internal/turbojpeg internal/webp internal/gpu internal/gpu/gputest
	internal/study/store
	internal/quickselect internal/plural internal/webguard internal/browse internal/mlflow internal/testdata
	internal/checksum internal/pictures internal/config internal/hubtest internal/fetch/uri internal/fetch internal/contactsheet internal/checkpoint
	internal/linalg internal/blas internal/simd internal/simd/avx
	internal/audio internal/benchmark internal/pooling internal/intern internal/parquetbounds

	measure/resample
	measure/paired measure/internal/action
	measure/seis measure/similarity measure/distance measure/equivariance measure/latent measure/prediction measure/dense measure/measuretest

	onnx/pb onnx/internal/einsum onnx/internal/pbutil
	onnx
	internal/ball internal/autoattack
	internal/testgraph
	onnx/internal/window
	onnx/infer onnx/internal/recurrence internal/blocks
	onnx/rewrite
	onnx/grad
	internal/reduction

	internal/accel/internal/kernels/vendored
	internal/accel/internal/kernels
	internal/accel
	engine/ort internal/orttest
	internal/testmodel

	transform
	dataset dataset/video
	engine/recorded engine/oip
	internal/model/logmel internal/model/output internal/model/preprocessing
	internal/model internal/model/modeltest

	internal/features internal/parity internal/extract

	internal/train internal/train/autoencoder internal/train/cdbn internal/train/filters
	internal/invert
	internal/procedure internal/procedure/proceduretest
	internal/procedure/firing internal/procedure/flips internal/procedure/lie internal/procedure/probe internal/procedure/stir internal/procedure/stitching internal/procedure/robust

	scores scores/correlation internal/parquetfile internal/junit internal/junit/junittest internal/schematest internal/policy

	internal/functions
	internal/study/internal/guard internal/study/internal/telemetry
	internal/study/spec
	internal/study/open internal/study/open/pixels
	internal/catalog
	internal/study/plan
	internal/study/results
	internal/study/run
	internal/study
	internal/study/studytest
	internal/train/recipe

	internal/report
	internal/report/figure internal/report/table internal/report/terminal internal/report/html internal/report/exchange
	internal/report/serve internal/report/internal/reporttest

	.

	internal/cluster/slurmtest
	internal/cluster
	internal/observe internal/demo

	cmd/noether
	internal/fixtures internal/fuzzcorpus internal/dist internal/demo/networks internal/screenshots internal/bench papers/internal/tablefile papers/coverage papers/resi papers/segmentation papers/goodfellow papers/stir papers/synesis papers/internal/seeds papers/internal/timed papers/internal/excerpt papers/internal/results
`)

func TestPackageOrder(t *testing.T) {
	t.Parallel()
	place := map[string]int{}
	for i, name := range order {
		if _, twice := place[name]; twice {
			t.Errorf("%s is listed twice", name)
		}
		place[name] = i
	}
	all := packages(t)
	for _, name := range order {
		if all[name] == nil {
			t.Errorf("package %s is listed and does not exist", name)
		}
	}
	for name, p := range all {
		own, listed := place[name]
		if !listed {
			t.Errorf("package %s is not listed", name)
		}
		for _, from := range p.imports {
			if place[from] >= own {
				t.Errorf("%s imports %s, which does not come before it", name, from)
			}
		}
	}
}

// notOfScores lists what rows of scores must not depend on.
var notOfScores = []string{"C", "dataset", "transform", "onnx", "onnx/", "engine", "engine/", "internal/model", "internal/procedure", "internal/study/", "internal/blas",
	"internal/simd/avx", "internal/dynlib", "internal/parquetfile", "github.com/parquet-go/", "google.golang.org/", "gocloud.dev/"}

// families are the measures, and the list of them.
var families = strings.Fields(`internal/catalog internal/invert internal/procedure/
	measure/seis measure/similarity measure/distance measure/equivariance measure/latent measure/prediction measure/dense`)

// notOfModels are the packages that models, and procedures that train nothing, must do without.
var notOfModels = []string{"engine/ort", "internal/accel", "internal/train", "github.com/yalue/onnxruntime_go"}

// without lists for a package what it must not depend on, itself or by what it imports: packages,
// or with a slash at the end all packages beneath a folder or module.
var without = map[string][]string{
	"scores":             notOfScores,
	"scores/correlation": notOfScores,
	"engine":             {"onnx", "onnx/", "dataset", "engine/"},
	"engine/recorded":    {"onnx", "onnx/", "engine/ort"},
	"engine/oip":         {"onnx", "onnx/", "dataset", "engine/ort"},
	"internal/model":     notOfModels,
	"internal/invert":    notOfModels, "internal/procedure": notOfModels,
	"internal/procedure/firing": notOfModels, "internal/procedure/flips": notOfModels, "internal/procedure/lie": notOfModels, "internal/procedure/robust": notOfModels, "internal/procedure/stir": notOfModels,
	"internal/study/spec": append([]string{"engine/", "internal/accel", "internal/model", "internal/procedure", "internal/train", "internal/train/",
		"internal/fetch", "measure/paired", "github.com/yalue/onnxruntime_go", "gocloud.dev/"}, families...),
	"internal/study/open":  families,
	"internal/study/plan":  families,
	"internal/study/store": {"engine/", "internal/study/", "internal/procedure", "internal/procedure/", "internal/train", "internal/train/", "measure", "measure/", "scores"},
}

func TestPackagesAreWithout(t *testing.T) {
	t.Parallel()
	all := packages(t)
	for name, forbidden := range without {
		for dependency, by := range dependencies(all, name) {
			for _, f := range forbidden {
				if dependency == f || strings.HasSuffix(f, "/") && strings.HasPrefix(dependency, f) {
					t.Errorf("%s depends on %s, which %s imports", name, dependency, by)
				}
			}
		}
	}
}

// dependencies returns what a package depends on, with a package that imports it. Of packages of
// other modules it returns those that this module imports.
func dependencies(all map[string]*goPackage, name string) map[string]string {
	found := map[string]string{}
	var add func(name string)
	add = func(name string) {
		for _, f := range all[name].foreign {
			found[f] = name
		}
		for _, own := range all[name].imports {
			if _, known := found[own]; !known {
				found[own] = name
				add(own)
			}
		}
	}
	add(name)
	return found
}

// pure lists what measures may depend on beside the standard library: themselves, linear algebra,
// statistics, and helpers that know no file, graph, engine, cloud or cgo. A slash at the end stands
// for all packages beneath a folder or module.
var pure = []string{"measure", "measure/", "tensor", "internal/linalg", "internal/simd", "internal/pooling", "internal/quickselect", "internal/seed", "internal/state",
	"gonum.org/v1/gonum/", "golang.org/x/sync/", "pgregory.net/rapid"}

// impure lists packages of the standard library with which a measure would open files, connections
// or programs, or call C.
var impure = []string{"C", "os", "os/exec", "net", "net/http", "plugin", "path/filepath", "syscall"}

func TestMeasuresArePure(t *testing.T) {
	t.Parallel()
	all := packages(t)
	measures := 0
	for name := range all {
		if name != "measure" && !strings.HasPrefix(name, "measure/") {
			continue
		}
		measures++
		for dependency, by := range dependencies(all, name) {
			first, _, _ := strings.Cut(dependency, "/")
			standard := all[dependency] == nil && !strings.Contains(first, ".")
			allowed := slices.ContainsFunc(pure, func(p string) bool {
				return dependency == p || strings.HasSuffix(p, "/") && strings.HasPrefix(dependency, p)
			})
			if standard && slices.Contains(impure, dependency) || !standard && !allowed {
				t.Errorf("%s depends on %s, which %s imports: let the caller give the measure what it needs", name, dependency, by)
			}
		}
	}
	if measures < 10 {
		t.Fatalf("only %d packages of measures were found", measures)
	}
}
