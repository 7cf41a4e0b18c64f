// Package docs holds the documentation. Its tests compare the documentation with the code.
package docs

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/model/preprocessing"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/train/recipe"
	"github.com/noether-ml/noether/onnx/grad"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/transform"
)

// pages returns the texts of all Markdown files of the documentation, and of some in the root
// folder, by path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"*.md", "*/*.md", "*/*/*.md", "../README.md", "../papers/*.md", "../papers/*/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			found[f] = page(t, f)
		}
	}
	return found
}

// page returns the text of one file.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	fence   = regexp.MustCompile("(?ms)^```.*?^```")
	notSlug = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns the names that GitHub gives to a page's headings, for links to them.
func anchors(text string) []string {
	var out []string
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		out = append(out, strings.ReplaceAll(notSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return out
}

func TestLinksHaveTargets(t *testing.T) {
	t.Parallel()
	for name, text := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			path := name
			if target != "" {
				path = filepath.Join(filepath.Dir(name), target)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: link to %s: %v", name, m[1], err)
			} else if anchor != "" && !slices.Contains(anchors(page(t, path)), anchor) {
				t.Errorf("%s: %s has no heading %q", name, target, anchor)
			}
		}
	}
}

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")

// Every example of a study file, which says what noether measures, or of a training file can be
// parsed, and so can examples of parts of a study file, in a template of a study.
func TestExamplesAreStudies(t *testing.T) {
	t.Parallel()
	// The values of ${DATA} and ${MODEL} in the examples.
	vars := map[string]string{"DATA": "data", "MODEL": "m.onnx"}
	templates := map[string]string{ // for examples of a part, by page
		"data.md":            "name: x\nmodels: {name: m, onnx: m.onnx}\nmeasures: [seis, accuracy, effective-invariance]\ndata:\n%s",
		"transformations.md": "name: x\ndata: {name: d, shapes: {}}\nmodels: {name: m, onnx: m.onnx}\nmeasures: [seis, accuracy, effective-invariance]\ntransforms:\n%s",
	}
	count := 0
	for name, text := range pages(t) {
		for _, m := range yamlBlock.FindAllStringSubmatch(text, -1) {
			body := m[1]
			switch {
			case strings.HasPrefix(filepath.Base(name), "training"):
				if _, err := recipe.Parse(name, []byte(body), map[string]string{"CIFAR10": "cifar10"}); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				continue
			case strings.HasPrefix(body, "name: "):
			case templates[filepath.Base(name)] != "":
				body = strings.TrimPrefix(strings.TrimPrefix(body, "data:\n"), "transforms:\n")
				body = fmt.Sprintf(templates[filepath.Base(name)], unique(body))
			default:
				continue
			}
			count++
			if _, err := study.Parse(name, []byte(body), vars); err != nil {
				t.Errorf("%s: %v\n%s", name, err, body)
			}
		}
	}
	if count < 12 {
		t.Errorf("%d examples were found, want at least 12: the regular expression yamlBlock may be wrong", count)
	}
}

var entryName = regexp.MustCompile(`name: \w[\w-]*`)

// unique gives the entries of a list different names, which a study needs: several examples on a
// page may have the same.
func unique(list string) string {
	n := 0
	return entryName.ReplaceAllStringFunc(list, func(string) string {
		n++
		return fmt.Sprintf("name: n%d", n)
	})
}

// row returns the line of a table that starts with the given cells. It is an error if there is
// none.
func row(t *testing.T, name, text string, cells ...string) string {
	t.Helper()
	start := strings.ReplaceAll("| "+strings.Join(cells, " | ")+" |", "|  |", "| |")
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, start) {
			return line
		}
	}
	t.Errorf("%s: no line starts with %s", name, start)
	return ""
}

// Every parameter of a transformation is documented with its range and default. A parameter whose
// name may be left out is bold. Those that many transformations share have a table of their own.
func TestTableOfTransformations(t *testing.T) {
	t.Parallel()
	const name = "reference/transformations.md"
	text := page(t, name)
	for _, k := range transform.Kinds() {
		first := "`" + k.Name + "`"
		if len(k.Params) == 0 {
			row(t, name, text, first, "none")
		}
		for _, p := range k.Params {
			if p.Name == "interpolation" && k.Name != "crop" || p.Name == "outside" || p.Name == "fill" {
				row(t, name, text, "`"+p.Name+"`", allowed(p))
				continue
			}
			parameter := "`" + p.Name + "`"
			if slices.Contains(k.Short, p.Name) {
				parameter = "**" + parameter + "**"
			}
			cells := []string{first, parameter, allowed(p)}
			if p.Required || p.Default != nil {
				cells = append(cells, byDefault(p))
			}
			row(t, name, text, cells...)
			first = ""
		}
	}
}

// allowed returns the text for the values that a parameter may have.
func allowed(p transform.Param) string {
	if p.Options != nil {
		return strings.Join(p.Options, ", ")
	}
	return p.Range()
}

// byDefault returns the text for the default of a parameter.
func byDefault(p transform.Param) string {
	if p.Required {
		return "required"
	}
	return fmt.Sprint(p.Default)
}

// The last column of the table of transformations, whether a transformation can be applied to
// feature maps, agrees with the code.
func TestTransformationsOfFeatureMaps(t *testing.T) {
	t.Parallel()
	text := page(t, "reference/transformations.md")
	for _, k := range transform.Kinds() {
		args := transform.Args{}
		for _, p := range k.Params {
			switch {
			case p.Required && p.Options != nil:
				args[p.Name] = transform.Option(p.Options[0])
			case p.Required || p.Name == "area" || p.Name == "snr": // of crop and white-noise, which need it or another
				args[p.Name] = transform.Fixed(max(min(1, p.Max), p.Min))
			}
		}
		made, err := k.Make(args)
		if err != nil {
			t.Fatal(err)
		}
		want := map[bool]string{true: "yes |", false: "no |"}[transform.OnMaps(made)]
		for _, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(line, "| `"+k.Name+"` |") && !strings.HasSuffix(line, want) {
				t.Errorf("%s: the last column is not %q: %s", k.Name, want, line)
			}
		}
	}
}

// Every key that a study file may have is mentioned, as code, in the reference or in the guides on
// video and audio.
func TestKeysOfStudyFiles(t *testing.T) {
	t.Parallel()
	raw, err := catalog.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties map[string]any
		Defs       map[string]any `json:"$defs"`
	}
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	text := page(t, "guides/video.md") + page(t, "guides/audio.md")
	for name, p := range pages(t) {
		if strings.HasPrefix(name, "reference/") {
			text += p
		}
	}
	found := keys(schema.Properties)
	for _, definition := range schema.Defs {
		maps.Copy(found, keys(map[string]any{"": definition}))
	}
	delete(found, "")
	for key := range found {
		inCode := regexp.MustCompile("`[^`\n]*\\b" + regexp.QuoteMeta(key) + "\\b[^`\n]*`")
		if !inCode.MatchString(text) {
			t.Errorf("the key %s is not documented", key)
		}
	}
	if len(found) < 70 {
		t.Errorf("%d keys were found in the schema, want at least 70", len(found))
	}
}

// keys returns the names of all properties of a schema, at any depth.
func keys(properties map[string]any) map[string]bool {
	out := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			if p, ok := v["properties"].(map[string]any); ok {
				for key := range p {
					out[key] = true
				}
			}
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(map[string]any{"properties": properties})
	return out
}

// The page on run folders, which hold the results of a study, names the columns of each table,
// those of Parquet files in order.
func TestColumnsOfScores(t *testing.T) {
	t.Parallel()
	text := strings.Join(strings.Fields(page(t, "reference/run-folder.md")), " ")
	for _, c := range scores.Columns {
		if !strings.Contains(text, "`"+c+"`") {
			t.Errorf("the column %s of scores.csv is not documented", c)
		}
	}
	if list := strings.Join(scores.SampleColumns, ", "); !strings.Contains(text, list) {
		t.Errorf("reference/run-folder.md does not list the columns of samples.parquet: %s", list)
	}
	for name, columns := range map[string][]string{"units.parquet": scores.UnitColumns, "curves.parquet": scores.CurveColumns} {
		if list := strings.Join(columns, ", "); !strings.Contains(text, list) {
			t.Errorf("reference/run-folder.md does not list the columns of %s: %s", name, list)
		}
	}
}

// The means and standard deviations of the presets (named settings) of preprocessing are
// documented.
func TestTableOfPresets(t *testing.T) {
	t.Parallel()
	text := page(t, "reference/preprocessing.md")
	for _, name := range []string{"imagenet", "cifar10", "clip"} {
		p, err := preprocessing.Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		line := row(t, "reference/preprocessing.md", text, "`"+name+"`")
		var listed []float32
		for _, text := range regexp.MustCompile(`\d\.\d+`).FindAllString(line, -1) {
			v, err := strconv.ParseFloat(text, 32)
			if err != nil {
				t.Fatal(err)
			}
			listed = append(listed, float32(v))
		}
		if !slices.Equal(listed, append(p.Mean, p.Std...)) {
			t.Errorf("preset %s has mean %v and deviation %v: %s", name, p.Mean, p.Std, line)
		}
	}
}

// The page on gradients names every operator that the package grad has a gradient rule for, and no
// other.
func TestEveryDifferentiableOperatorIsListed(t *testing.T) {
	t.Parallel()
	_, table, ok := strings.Cut(page(t, "reference/gradients.md"), "## Operators")
	if !ok {
		t.Fatal("reference/gradients.md has no section Operators")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	var listed []string
	for _, row := range regexp.MustCompile(`(?m)^\| [^|]+ \| ([^|]+) \|$`).FindAllStringSubmatch(table, -1) {
		listed = append(listed, regexp.MustCompile(`\b[A-Z][A-Za-z0-9]+\b`).FindAllString(row[1], -1)...)
	}
	slices.Sort(listed)
	if want := grad.Operators(); !slices.Equal(listed, want) {
		for _, name := range want {
			if !slices.Contains(listed, name) {
				t.Errorf("reference/gradients.md: %s has a rule and is not in the table of operators", name)
			}
		}
		for i, name := range listed {
			if !slices.Contains(want, name) {
				t.Errorf("reference/gradients.md: %s is in the table of operators and has no rule in onnx/grad/rules.go", name)
			} else if i > 0 && listed[i-1] == name {
				t.Errorf("reference/gradients.md: %s is in the table of operators twice", name)
			}
		}
	}
}
