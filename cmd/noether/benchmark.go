package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/internal/benchmark"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/scores"
)

func benchmarkCommand() *cobra.Command {
	var template, reference string
	var all, asJSON bool
	c := &cobra.Command{
		Use:   "benchmark RUN",
		Short: "Print the numbers of published benchmarks, such as the mCE on ImageNet-C",
		Long: `Prints the numbers of the benchmarks among the data of a run (key benchmark of the study), as their authors define them: the mCE
and the relative mCE of ImageNet-C, the mFR of ImageNet-P, mean errors, the accuracy on ImageNet-A, -R, -Sketch, -V2, ObjectNet and
LAION-C and its gap to clean images, the rPC of detectors. It says which were computed on corruptions of this program instead of the
published images, and which data sets and images of the protocol are missing. Errors on the same images may go together, so the
half-widths of intervals are added up. The null is what a guess gives, and for flips what frames of different sequences give.

--template prints a study file for a benchmark.`,
		Example: "  noether benchmark runs/imagenet-c --all\n  noether benchmark --template imagenet-c > study.yaml",
		Args: usageArgs(func(c *cobra.Command, args []string) error {
			if template != "" {
				return cobra.NoArgs(c, args)
			}
			return cobra.ExactArgs(1)(c, args)
		}),
		RunE: func(c *cobra.Command, args []string) error {
			if template != "" {
				text, err := benchmarkTemplate(template)
				if err != nil {
					return usagef(c, "--template: %v", err)
				}
				_, err = io.WriteString(stdout, text)
				return err
			}
			run, err := study.ReadResult(args[0])
			if err != nil {
				return err
			}
			found, err := scores.BenchmarksRelativeTo(reference, run.Rows, run.Record)
			if err != nil {
				return err
			}
			if len(found) == 0 {
				return fmt.Errorf("%s has no data of a benchmark: give an entry of data the key benchmark, such as benchmark: {name: imagenet-c, path: ...}", args[0])
			}
			return show(asJSON, benchmarkJSON(found), func() error { return printBenchmarks(found, all) })
		},
	}
	f := c.Flags()
	f.BoolVar(&all, "all", false, "also print the numbers of each corruption")
	f.StringVar(&reference, "relative-to", "", "divide by the scores of this model of the run in place of AlexNet's published ones, in mCE, mFR and the like")
	f.StringVar(&template, "template", "", "print a study file for a benchmark: "+strings.Join(benchmark.Names(), ", "))
	addJSON(c, &asJSON)
	return c
}

// benchmarkTemplate returns the text of a study file that measures models on a benchmark.
func benchmarkTemplate(name string) (string, error) {
	b, err := benchmark.Find(name)
	if err != nil {
		return "", err
	}
	about := fmt.Sprintf("%s (%s).", b.Title, b.Source)
	keys := fmt.Sprintf("name: %s, path: \"${DATA}/%s\"", name, b.Published)
	switch {
	case b.Layout == benchmark.COCO:
		keys = fmt.Sprintf("name: %s, annotations: \"${DATA}/annotations/instances_val2017.json\", clean: \"${DATA}/val2017\"", name)
		about += " The images are corrupted by Noether."
	case name == "cifar-100-c":
		keys += ", clean: \"${DATA}/test.bin\""
	case b.Layout == benchmark.Stacked:
		keys += ", clean: \"${DATA}/test_batch.bin\""
	case !b.Present && b.Groups == nil && b.Layout != benchmark.Sequences:
		keys += ", clean: \"${DATA}/val\""
	}
	if b.Own && b.Layout != benchmark.COCO {
		about += " Without path, the clean images are corrupted by Noether."
	}
	preprocess := "imagenet"
	if b.Layout == benchmark.Stacked {
		preprocess = "cifar10"
	}
	model := fmt.Sprintf("{name: model, onnx: \"${MODEL}\", preprocess: %s}", preprocess)
	if b.Layout == benchmark.COCO {
		model = "{name: model, onnx: \"${MODEL}\"}"
	}
	return fmt.Sprintf(`# noether run study.yaml --var DATA=FOLDER --var MODEL=FILE -o runs/%[1]s
# noether benchmark runs/%[1]s
name: %[1]s
description: %[2]s
data:
  - name: %[1]s
    benchmark: {%[3]s}
models:
  - %[4]s
measures: [%[5]s]
`, name, about, keys, model, b.Measure), nil
}

type benchmarkScoreJSON struct {
	Benchmark string   `json:"benchmark"`
	Data      string   `json:"data"`
	Model     string   `json:"model"`
	Statistic string   `json:"statistic"`
	Kind      string   `json:"kind,omitempty"`
	Value     *float64 `json:"value"`
	Low       *float64 `json:"low"`
	High      *float64 `json:"high"`
	Null      *float64 `json:"null"`
	N         int      `json:"n"`
	Own       bool     `json:"own"`
	Missing   string   `json:"missing,omitempty"`
}

func benchmarkJSON(found []scores.BenchmarkScore) []benchmarkScoreJSON {
	number := func(v float64) *float64 { // null where there is none
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
		return &v
	}
	out := []benchmarkScoreJSON{}
	for _, s := range found {
		out = append(out, benchmarkScoreJSON{s.Benchmark, s.Data, s.Model, s.Statistic, s.Kind, number(s.Value), number(s.Low), number(s.High), number(s.Null), s.N, s.Own, s.Missing})
	}
	return out
}

func printBenchmarks(found []scores.BenchmarkScore, all bool) error {
	t := textTable{header: []string{"data", "model", "statistic", "value", "95 % interval", "null", "n"}}
	var notes []string
	note := func(text string) {
		if len(notes) == 0 || notes[len(notes)-1] != text {
			notes = append(notes, text)
		}
	}
	for _, s := range found {
		if s.Kind == "" && s.Missing != "" {
			note(fmt.Sprintf("%s: without %s, so not the published protocol", s.Data, s.Missing))
		}
		if s.Kind == "" && s.Own {
			note(fmt.Sprintf("%s: corrupted by Noether, not the published images", s.Data))
		}
		if s.Kind != "" && !all {
			continue
		}
		interval := ""
		if !math.IsNaN(s.Low) {
			interval = fmt.Sprintf("[%.4f, %.4f]", s.Low, s.High)
		}
		null := ""
		if !math.IsNaN(s.Null) {
			null = fmt.Sprintf("%.4f", s.Null)
		}
		t.rows = append(t.rows, []string{s.Data, s.Model, strings.TrimSpace(s.Statistic + " " + s.Kind), fmt.Sprintf("%.4f", s.Value), interval, null, fmt.Sprint(s.N)})
	}
	text := t.write(terminalWidth(os.Stdout), 0, 1)
	seen := map[string]bool{}
	for _, n := range notes {
		if !seen[n] {
			text += n + "\n"
		}
		seen[n] = true
	}
	_, err := io.WriteString(stdout, text)
	return err
}
