package exchange_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	yaml "github.com/goccy/go-yaml"

	"github.com/noether-ml/noether/internal/junit"
	"github.com/noether-ml/noether/internal/junit/junittest"
	"github.com/noether-ml/noether/internal/report/exchange"
	"github.com/noether-ml/noether/internal/report/internal/reporttest"
	"github.com/noether-ml/noether/internal/schematest"
	"github.com/noether-ml/noether/scores"
)

// usual is a run of two models; of one if name is not "".
func usual(name string) *exchange.Run {
	rows, record := reporttest.UsualRun.Rows()
	if name != "" {
		rows = slices.DeleteFunc(rows, func(r scores.Row) bool { return r.Model != name })
	}
	return &exchange.Run{Rows: rows, Record: record}
}

// mean returns the index of the first row of the overview.
func mean(run *exchange.Run) int {
	return slices.IndexFunc(run.Rows, func(r scores.Row) bool { return r.Measure == "effective-invariance" && r.Parameter == "" })
}

func firstModel() string {
	rows, _ := reporttest.UsualRun.Rows()
	return rows[0].Model
}

// TestEvalEverFollowsItsSchema validates records by the schema of Every Eval Ever: with intervals,
// warnings and nulls, without them, and of a model of the hub with tags.
func TestEvalEverFollowsItsSchema(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/eval.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	schema, version := schematest.Compile(t, raw), schematest.Value(t, raw).(map[string]any)["version"]
	plain := usual(firstModel())
	bare := usual(firstModel())
	for i := range bare.Rows {
		bare.Rows[i].Low, bare.Rows[i].High, bare.Rows[i].Null, bare.Rows[i].Warning = math.NaN(), math.NaN(), math.NaN(), "few samples"
	}
	bare.Rows[mean(bare)].Value = math.NaN()
	bare.Record.Finished, bare.Record.Measures, bare.Record.Noether = nil, nil, ""
	hub := usual(firstModel())
	hub.Record.Models[0].Path, hub.Record.Models[0].Tags = "hf://acme/net@main/model.onnx", map[string]string{"deployment_type": "edge"}
	ids := map[string]string{}
	for name, run := range map[string]*exchange.Run{"plain": plain, "bare": bare, "hub": hub} {
		var b bytes.Buffer
		without, err := run.WriteEvalEver(&b, exchange.Evaluator{})
		if err != nil {
			t.Fatal(err)
		}
		if want := map[string]int{"bare": 1}[name]; without != want {
			t.Errorf("%s: %d scores without a value, want %d", name, without, want)
		}
		got := schematest.Value(t, b.Bytes())
		if err := schema.Validate(got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		record := got.(map[string]any)
		ids[name] = record["model_info"].(map[string]any)["id"].(string)
		if record["schema_version"] != version {
			t.Errorf("the version %v is not that of the schema, %v", record["schema_version"], version)
		}
		if n := len(record["evaluation_results"].([]any)); n < 4 {
			t.Errorf("%s: %d results", name, n)
		}
		seen := map[any]bool{}
		for _, one := range record["evaluation_results"].([]any) {
			id := one.(map[string]any)["evaluation_result_id"]
			if seen[id] {
				t.Errorf("%s: the id %v is used twice", name, id)
			}
			seen[id] = true
		}
	}
	if ids["hub"] != "acme/net" || ids["plain"] != firstModel() {
		t.Errorf("ids of the models: %v", ids)
	}
}

// keysOf adds the keys of a YAML value and of what is in it, such as dataset.id.
func keysOf(value any, prefix string, found map[string]bool) {
	switch value := value.(type) {
	case []any:
		for _, one := range value {
			keysOf(one, prefix, found)
		}
	case map[string]any:
		for key, of := range value {
			found[prefix+key] = true
			keysOf(of, prefix+key+".", found)
		}
	}
}

// TestHubFollowsItsSpecification checks that the keys are those of Hugging Face's specification,
// and that none that it requires is missing.
func TestHubFollowsItsSpecification(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/eval_results.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var specification any
	// A placeholder such as {task_id} is no YAML of its key, and is replaced.
	if err := yaml.Unmarshal(regexp.MustCompile(`"?\{\w+\}"?`).ReplaceAll(raw, []byte("x")), &specification); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	keysOf(specification, "", known)
	var b bytes.Buffer
	run := usual(firstModel())
	without, err := run.WriteHub(&b, exchange.Benchmark{Dataset: "acme/rotated", Revision: "abc", Source: "https://example.org/run"})
	if err != nil || without != 0 {
		t.Fatal(without, err)
	}
	var got []map[string]any
	if err := yaml.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	tasks := map[any]bool{}
	for _, one := range got {
		found := map[string]bool{}
		keysOf(one, "", found)
		for key := range found {
			if !known[key] {
				t.Errorf("the key %s is not in the specification: %v", key, slices.Sorted(maps.Keys(known)))
			}
		}
		for _, required := range []string{"dataset.id", "dataset.task_id", "value", "source.url"} {
			if !found[required] {
				t.Errorf("no %s in %v", required, one)
			}
		}
		if _, number := one["value"].(float64); !number {
			t.Errorf("the value is %T", one["value"])
		}
		if _, text := one["date"].(string); !text {
			t.Errorf("the date is %T, and not a text", one["date"])
		}
		task := one["dataset"].(map[string]any)["task_id"]
		if tasks[task] {
			t.Errorf("the task %v is used twice", task)
		}
		tasks[task] = true
	}
	if len(got) < 4 {
		t.Errorf("%d results", len(got))
	}
	for _, bad := range []exchange.Benchmark{{}, {Dataset: "rotated"}, {Dataset: "acme/rotated", Task: "one-of-many"}} {
		if _, err := run.WriteHub(&b, bad); err == nil {
			t.Errorf("no error for %+v", bad)
		}
	}
	if _, err := usual("").WriteHub(&b, exchange.Benchmark{Dataset: "acme/rotated"}); err == nil || !strings.Contains(err.Error(), "--model") {
		t.Errorf("several models: %v", err)
	}
}

// TestJUnit checks that every score is a case, and that a failure and a score without a value are
// errors.
func TestJUnit(t *testing.T) {
	t.Parallel()
	run := usual("")
	run.Record.Failed = []scores.Failure{{Model: run.Rows[0].Model, Measure: "seis", Error: "out of memory\x1b"}, {Model: "broken", Error: "no such file"}}
	run.Rows[mean(run)].Value = math.NaN()
	var b bytes.Buffer
	if err := run.WriteJUnit(&b); err != nil {
		t.Fatal(err)
	}
	junittest.Check(t, b.Bytes())
	var got junit.Suites
	if err := xml.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Suites) != 3 || got.Suites[0].Errors != 2 || got.Suites[2].Name != "broken" || got.Suites[2].Errors != 1 {
		t.Errorf("%+v", got)
	}
	for _, s := range got.Suites {
		seen := map[string]bool{}
		for _, c := range s.Cases {
			if seen[c.Name] {
				t.Errorf("%s: the case %q is there twice", s.Name, c.Name)
			}
			seen[c.Name] = true
		}
	}
	if s := got.Suites[1]; s.Tests != len(s.Cases) || s.Tests < 4 || !strings.Contains(s.Cases[0].Output, "n = ") {
		t.Errorf("%+v", s)
	}
}

// TestCard puts the section into a card twice: the second replaces the first.
func TestCard(t *testing.T) {
	t.Parallel()
	section, err := usual("").Card("card-noether.svg")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"| model |", "](card-noether.svg)", "2,000 samples", "seed"} {
		if !strings.Contains(section, part) {
			t.Errorf("no %q in %s", part, section)
		}
	}
	const before = "---\nlicense: mit\n---\n# Net\n"
	once, err := exchange.InCard(before, section)
	if err != nil || !strings.HasPrefix(once, before) {
		t.Fatal(err, once)
	}
	twice, err := exchange.InCard(once+"\n## After\n", section)
	if err != nil || twice != once+"\n## After\n" {
		t.Errorf("%v\n%s\nwant\n%s", err, twice, once)
	}
	if _, err := exchange.InCard("<!-- noether: end -->", section); err == nil {
		t.Error("no error for a mark without its other one")
	}
	var b bytes.Buffer
	if err := usual("").WritePicture(&b); err != nil || !strings.Contains(b.String(), "<svg") {
		t.Errorf("%v, %.100s", err, b.String())
	}
}

// TestBadge checks that the worst score is shown, and what is refused.
func TestBadge(t *testing.T) {
	t.Parallel()
	run := usual(firstModel())
	if err := run.WriteBadge(&bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "--statistic") {
		t.Errorf("several statistics: %v", err)
	}
	run.Rows = slices.DeleteFunc(run.Rows, func(r scores.Row) bool {
		return r.Measure != "effective-invariance" || r.Statistic != "ei" || r.Parameter != ""
	})
	if len(run.Rows) != 3 {
		t.Fatalf("%d rows, want one for each transformation", len(run.Rows))
	}
	run.Rows[1].Value, run.Rows[1].Transform = 0.125, "<tilt>"
	var b bytes.Buffer
	if err := run.WriteBadge(&b); err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(b.Bytes(), new(struct{})); err != nil || !strings.Contains(b.String(), "0.125 (worst: &lt;tilt&gt;)") {
		t.Errorf("%v: %s", err, b.String())
	}
}

// TestEqualRunsGiveEqualFiles checks that no time of the export is in a record.
func TestEqualRunsGiveEqualFiles(t *testing.T) {
	t.Parallel()
	var all [2]bytes.Buffer
	for i := range all {
		if _, err := usual(firstModel()).WriteEvalEver(&all[i], exchange.Evaluator{}); err != nil {
			t.Fatal(err)
		}
	}
	if !json.Valid(all[0].Bytes()) || !bytes.Equal(all[0].Bytes(), all[1].Bytes()) {
		t.Error("two exports of a run differ")
	}
}
