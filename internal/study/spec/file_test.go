package spec_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	yaml "github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/schematest"
	"github.com/noether-ml/noether/internal/study/spec"
)

// exampleText is a study that uses most keys.
const exampleText = `name: test
seed: 3
data: [{name: shapes, shapes: {n: 150, size: 16, seed: 2}}]
models:
  - {name: small, onnx: small.onnx, layers: ["op:Conv", "op:Relu", output]}
transforms:
  - {name: quarter, rotate: {values: [90, 180]}}
  - {name: tilt, rotate: [-15, 15], per: trial}
  - {name: shift, translate: [-0.2, 0.2], on: activations, per: trial}
measures: [accuracy, effective-invariance: {per-class: true}, prediction-divergence, distance, seis]
`

// variables are values for the variables, such as ${MODELS}, of the studies in the folder papers.
var variables = map[string]string{"CIFAR10": "cifar10", "MODELS": "models", "NETS": "nets", "CLIPS": "clips", "PICTURES": "photos", "VARIANTS": "variants", "NETWORK": "network.onnx", "NETWORKS": "networks", "FSDD": "fsdd", "STRINGS": "strings"}

// everyStudy returns the study files of the repository by name, and the study in the README.
func everyStudy(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("../../../papers/*/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("the folder papers has the studies %v, error %v; want at least two", files, err)
	}
	out := map[string][]byte{}
	for _, f := range append(files, "../../demo/demo.yaml", "../../../README.md") {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(f) == ".md" {
			_, rest, ok := bytes.Cut(raw, []byte("```yaml\n"))
			raw, _, _ = bytes.Cut(rest, []byte("```"))
			if !ok {
				t.Fatal("the README has no study in a YAML block")
			}
		}
		out[f] = raw
	}
	return out
}

// compiledSchema returns the JSON Schema of study files.
func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	raw, err := catalog.Schema()
	if err != nil {
		t.Fatal(err)
	}
	return schematest.Compile(t, raw)
}

// validate returns the error of a schema for a YAML text.
func validate(t *testing.T, s *jsonschema.Schema, text []byte) error {
	t.Helper()
	raw, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(schematest.Value(t, raw))
}

// checkpointFolders matches the variable and the rest of the path in a value of the key
// checkpoints.
var checkpointFolders = regexp.MustCompile(`checkpoints: "?\$\{(\w+)\}([^"\s,}]*)`)

// variablesOf returns values for the variables of a study. If the key checkpoints of a model names
// the output folder of a training, it writes this folder with one checkpoint. The variable in its
// path is then a temporary folder.
func variablesOf(t *testing.T, study []byte) map[string]string {
	t.Helper()
	values := maps.Clone(variables)
	values["TRAININGS"] = t.TempDir()
	for _, m := range checkpointFolders.FindAllSubmatch(study, -1) {
		variable := string(m[1])
		if !filepath.IsAbs(values[variable]) {
			values[variable] = t.TempDir()
		}
		folder := filepath.Join(values[variable], string(m[2]))
		if err := os.MkdirAll(filepath.Join(folder, "epochs"), 0o777); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"summary.json": `{"kept": 1}`, "epochs/001.onnx": ""} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	return values
}

// Each study file of the repository is parsed without an error and is valid by the schema.
func TestStudyFilesAreValid(t *testing.T) {
	t.Parallel()
	schema := compiledSchema(t)
	for name, text := range everyStudy(t) {
		if _, err := catalog.Parse(name, text, variablesOf(t, text)); err != nil {
			t.Error(err)
		}
		if err := validate(t, schema, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := validate(t, schema, []byte(exampleText)); err != nil {
		t.Error(err)
	}
}

// The parser and the schema reject the same mistakes. Each changes the first text to the second.
func TestSchemaAndParserRejectTheSame(t *testing.T) {
	t.Parallel()
	schema := compiledSchema(t)
	for _, change := range [][2]string{
		{"seed: 3", "sed: 3"},
		{"seed: 3", "seed: -3"},
		{"measures: [accuracy", "measures: [acuracy"},
		{"per-class: true", "per-clas: true"},
		{"per: trial", "per: epoch"},
		{"rotate: [-15, 15]", "rotate: {range: [-15]}"},
		{"size: 16", "sizes: 16"},
		{"layers: [", "layer: ["},
	} {
		text := strings.Replace(exampleText, change[0], change[1], 1)
		if text == exampleText {
			t.Fatalf("the study has no text %q to replace", change[0])
		}
		if _, err := catalog.Parse("s.yaml", []byte(text), nil); err == nil {
			t.Errorf("the parser accepts %q", change[1])
		}
		if validate(t, schema, []byte(text)) == nil {
			t.Errorf("the schema accepts %q", change[1])
		}
	}
}

func TestPublishedSchema(t *testing.T) {
	t.Parallel()
	published, err := os.ReadFile("../../../docs/study.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	generated, err := catalog.Schema()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(bytes.TrimSpace(published), bytes.TrimSpace(generated)) {
		t.Error("docs/study.schema.json is not what `noether schema` prints; make schemas renews it")
	}
	if !json.Valid(published) {
		t.Error("docs/study.schema.json is not JSON")
	}
}

// TestStudyErrors checks the errors of studies in which the text from is replaced by the text to.
func TestStudyErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, to, want string }{
		{"", "", ""}, // exampleText itself is valid
		{"name: test", "name: test\nmemory: lots", `"lots" is not a size`},
		{"measures: [", "measures: [seiss, ", `unknown measure "seiss"; did you mean "seis"?`},
		{"seis]", "seis: {varience: 1}]", `did you mean "variance"?`},
		{"values: [90, 180]", "values: [" + strings.Repeat("1,", 4) + "]", "occurs twice"},
		{"seed: 3", "seed: 3\ntrials: 1000000", "this study needs"}, // more cells (units of work) than are allowed
		{"{name: shift", "{name: tilt", `the name "tilt" occurs twice`},
		{"shapes: {n: 150", "shapes: {n: 0", "at least 1"},
		{"measures:", "measure:", `unknown key "measure"; did you mean "measures"?`},
	} {
		text := strings.Replace(exampleText, c.from, c.to, 1)
		_, err := catalog.Parse("s.yaml", []byte(text), nil)
		if c.want == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "s.yaml:") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q gives %v, want one line with a position and %q", c.to, err, c.want)
		}
	}
}

// ParseSize reads sizes of memory. A wanted size of 0 stands for an error.
func TestParseSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]spec.Size{"1": 1, "512MiB": 512 << 20, "1.5GiB": 3 << 29, "2 KB": 2000, "1TiB": 1 << 40,
		"": 0, "0": 0, "-1": 0, "many": 0, "5 apples": 0, "512MiB garbage": 0, "0.5": 0, "B": 0, "1e300GiB": 0, "NaN": 0} {
		if got, err := spec.ParseSize(text); got != want || (err != nil) != (want == 0) {
			t.Errorf("%q gives %d, %v; want %d", text, got, err, want)
		}
	}
}

// FuzzParse checks that errors have one line, and that a text without the word name is no study.
func FuzzParse(f *testing.F) {
	f.Add([]byte(exampleText))
	f.Add([]byte("name: x\ndata: {name: a, cifar10: f}\nmodels: {name: m, onnx: f, preprocess: {mean: 0.5}}\nmeasures: seis\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := catalog.Parse("s.yaml", text, map[string]string{})
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("more than one line: %q", err)
		}
		if err == nil && s.Name == "" && !bytes.Contains(text, []byte("name")) {
			t.Error("a study without a name")
		}
	})
}
