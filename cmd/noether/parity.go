package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/engine/recorded"
	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/fetch/uri"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/parity"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/open"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/scores"
)

type parityFlags struct {
	preprocess, preprocessOther string
	output                      string
	layers, transforms, failIf  []string
	limit                       int
	seed                        uint64
	tolerance                   float64
	csv                         string
	all, json                   bool
	python                      pythonFlags
}

func parityCommand(engine *engineFlags) *cobra.Command {
	var f parityFlags
	c := &cobra.Command{
		Use:   "parity ORIGINAL OTHER DATA",
		Short: "Compare another form of a model, such as its quantised file, with the original, layer by layer",
		Long: `Runs two forms of one model on the same samples: a quantised, float16 or pruned file, or one of another exporter or
engine: OTHER may be the address of a server, a function of Python (package.module:function, with --allow-python) or a folder of
recorded activations. It says how often they predict the same, or how far the boxes of two detectors or the class maps of two
segmenters agree, in which layer they begin to differ, what each layer adds (its error when it is computed from the original's
values) and, for a quantised model, which nodes to leave in float. Layers are matched by name, by module of PyTorch, or by order
and shape. DATA may also be an entry of data as in a study file, for example with labelled boxes or masks.

A condition of --fail-if is on a score with its interval, as agreement < 0.99 or snr/LAYER < 20: exit code 3. A condition that ends in !
is on the value alone.`,
		Example: "  noether parity resnet18.onnx resnet18-int8.onnx photos/ --preprocess imagenet\n" +
			"  noether parity resnet18.onnx http://localhost:8000/v2/models/resnet18 photos/ --fail-if 'agreement < 0.99'\n" +
			"  noether parity net.onnx net-int8.onnx test_batch.bin --transform 'rotate: {values: [5, 10]}' --transform 'corrupt: {kind: fog, severity: 3}'\n" +
			"  noether parity yolo.onnx yolo-int8.onnx 'coco: {annotations: instances_val2017.json, images: val2017}' --fail-if 'map-difference < -0.01'",
		Args: usageArgs(cobra.ExactArgs(3)),
		RunE: func(c *cobra.Command, args []string) error {
			if f.limit < 2 {
				return usagef(c, "--limit is %d: it must be at least 2", f.limit)
			}
			if !(f.tolerance >= 0) {
				return usagef(c, "--tolerance is %v: it must be at least 0", f.tolerance)
			}
			conditions, err := parseConditions(c, parityConditions(f.failIf))
			if err != nil {
				return err
			}
			report, err := f.run(c.Context(), engine, args)
			if err != nil {
				return err
			}
			if f.csv != "" {
				if err := atomicfile.WriteFunc(f.csv, func(w io.Writer) error { return scores.WriteCSV(w, scores.WithoutFormulas(report.rows)) }); err != nil {
					return err
				}
			}
			if err := show(f.json, report, func() error { return report.print(stdout, f.all) }); err != nil {
				return err
			}
			return checkGate(conditions, report.rows)
		},
	}
	p := c.Flags()
	p.StringVar(&f.preprocess, "preprocess", "", "of both models: imagenet, cifar10, clip, none, a preprocessor_config.json, or a mapping such as '{resize: 256, crop: 224}' (default: preprocessor_config.json beside the original, else its metadata)")
	p.StringVar(&f.preprocessOther, "preprocess-other", "", "of the other model (default: that of the original)")
	p.StringVar(&f.output, "output", "", "output of both models that is decoded, as in a study file: '{boxes: yolov8}' (default: found by its shape and names)")
	p.StringSliceVar(&f.layers, "layers", []string{"all"}, "layers of the original to compare: all, op:TYPE, a glob on tensor names, residual, penultimate, output")
	p.StringArrayVar(&f.transforms, "transform", nil, "also compare predictions under a transformation, as in a study file: 'rotate: 10'; may be given several times")
	p.StringArrayVar(&f.failIf, "fail-if", nil, "exit with 3 if a score meets SCORE < NUMBER or SCORE > NUMBER with its whole interval; may be given several times")
	p.IntVar(&f.limit, "limit", 200, "number of samples, selected at random")
	p.Uint64Var(&f.seed, "seed", 1, "seed of all random numbers")
	p.Float64Var(&f.tolerance, "tolerance", 0.01, "relative l2 distance above which a layer differs")
	p.StringVar(&f.csv, "csv", "", "file that all scores are written to, with the columns of scores.csv")
	p.BoolVar(&f.all, "all", false, "list every layer")
	p.BoolVar(&f.json, "json", false, "print JSON")
	f.python.add(p)
	return c
}

// parityConditions completes conditions on scores of this command, such as agreement < 0.99.
func parityConditions(texts []string) []string {
	var out []string
	for _, text := range texts {
		name := text
		if at := strings.IndexAny(text, "@/<>"); at >= 0 {
			name = text[:at]
		}
		if !strings.Contains(name, ".") {
			text = parity.MeasureName + "." + strings.TrimSpace(text)
		}
		out = append(out, text)
	}
	return out
}

// A gateError says that a condition of --fail-if is met.
type gateError struct{ error }

// gateExit is the exit code of a gateError.
const gateExit = 3

func checkGate(conditions []scores.Condition, rows []scores.Row) error {
	var failed []string
	for _, condition := range conditions {
		found, err := condition.FailingValues(rows)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			failed = append(failed, fmt.Sprintf("%s: %.4g (%s)", condition, found[0].Value, found[0].Describe()))
		}
	}
	if len(failed) > 0 {
		return &gateError{fmt.Errorf("conditions met: %s", strings.Join(failed, "; "))}
	}
	return nil
}

// run compares the models that the arguments name.
func (f *parityFlags) run(ctx context.Context, engine *engineFlags, args []string) (*parityReport, error) {
	s, err := f.study(ctx, args)
	if err != nil {
		return nil, err
	}
	stopPython, err := f.python.start(ctx, s)
	if err != nil {
		return nil, err
	}
	defer stopPython()
	o, err := engine.open()
	if err != nil {
		return nil, err
	}
	o.FailFast, o.AllowEmpty, o.RoundHalf = true, true, true
	plan, err := study.NewPlan(ctx, s, o)
	if err != nil {
		return nil, err
	}
	defer plan.Close()
	original, other, data := plan.Models[0].Net, plan.Models[1].Net, plan.Data[0]
	r := &parityReport{Original: formOf(original), Other: formOf(other), Data: args[2], tolerance: f.tolerance}
	pairs, unmatched := parity.Match(original, other)
	progress, done := showProgress(os.Stderr)
	r.result, err = parity.Compare(ctx, original, other, pairs, parity.Samples{Source: data.Source, Order: data.Order.First(data.Order.Len()), Layout: data.Layout},
		parity.Options{Progress: func(n, of int) {
			progress(study.Progress{Done: int64(n), Total: int64(of), Samples: n, AllSamples: of, Model: fileName(args[1]), Data: fileName(args[2])})
		}})
	done()
	if err != nil {
		return nil, err
	}
	cells, err := study.Cells(ctx, plan)
	if err != nil {
		return nil, err
	}
	r.fill(cells, unmatched)
	r.addWorst(plan)
	r.addSkips(plan.Skips)
	return r, nil
}

// study returns the study that compares the predictions; its models and data serve the layers too.
func (f *parityFlags) study(ctx context.Context, args []string) (*study.Study, error) {
	preprocess, err := f.preprocessing(ctx, args)
	if err != nil {
		return nil, err
	}
	entry, err := parityData(ctx, args[2])
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "name: parity\nseed: %d\ndata:\n  - {name: data, %s, shuffle: true, limit: %d}\nmodels:\n", f.seed, entry, f.limit)
	for i, name := range []string{"original", "other"} {
		key := engineKey(args[i])
		fmt.Fprintf(&b, "  - {name: %s, %s: %s", name, key, jsonText(args[i]))
		if preprocess[i] != "" && key != "activations" {
			fmt.Fprintf(&b, ", preprocess: %s", preprocess[i])
		}
		if f.output != "" && key == "onnx" {
			fmt.Fprintf(&b, ", output: %s", f.output)
		}
		if i == 0 {
			fmt.Fprintf(&b, ", layers: %s", jsonText(f.layers))
		}
		b.WriteString("}\n")
	}
	if len(f.transforms) > 0 {
		b.WriteString("transforms:\n")
		for _, t := range f.transforms {
			if strings.Contains(t, ":") && !strings.HasPrefix(t, "{") {
				t = "{" + t + "}"
			}
			fmt.Fprintf(&b, "  - %s\n", t)
		}
	}
	b.WriteString("measures: [accuracy, effective-invariance, {prediction-agreement: {between: all}}, dense-accuracy, dense-equivariance, {dense-agreement: {between: all}}]\n")
	return study.Parse("parity", []byte(b.String()), nil)
}

// parityData returns the keys of the study's entry of data, without its braces. An argument that is
// an entry itself has a key, as in `coco: {annotations: FILE, images: FOLDER}`.
func parityData(ctx context.Context, arg string) (string, error) {
	if text, ok := strings.CutPrefix(arg, "{"); ok {
		return strings.TrimSuffix(strings.TrimSpace(text), "}"), nil
	}
	if _, err := os.Stat(arg); err != nil && strings.Contains(arg, ": ") {
		return arg, nil
	}
	data, err := open.UnpackedData(ctx, arg)
	if err != nil {
		return "", err
	}
	kind, err := open.GuessKind(data)
	if err != nil {
		return "", err
	}
	return kind + ": " + dataEntry(kind, data), nil
}

// dataEntry returns the value of the key of a kind of data.
func dataEntry(kind, path string) string {
	if kind == "sound" {
		return "{folder: " + jsonText(path) + "}"
	}
	return jsonText(path)
}

// jsonText writes a value as JSON, which YAML reads.
func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and lists of them only
	}
	return strings.ReplaceAll(string(text), "$", `\u0024`) // no variable of the study
}

// engineKey returns the key of a study's model by which an argument names a model.
func engineKey(arg string) string {
	if strings.Contains(arg, "/v2/models/") {
		return "url"
	}
	if info, err := os.Stat(arg); err != nil {
		if spec.IsFunction(arg) {
			return "python"
		}
	} else if clean, _ := filepath.Glob(filepath.Join(arg, recorded.Clean+"*")); info.IsDir() && len(clean) > 0 {
		return "activations"
	}
	return "onnx"
}

// preprocessing returns the value of the key preprocess of both models; "": it is found as for a
// study.
func (f *parityFlags) preprocessing(ctx context.Context, args []string) (out [2]string, err error) {
	asValue := func(text string) string {
		if text == "" || strings.HasPrefix(text, "{") {
			return text
		}
		return jsonText(text)
	}
	out[0], out[1] = asValue(f.preprocess), asValue(f.preprocessOther)
	if out[1] != "" || out[0] != "" {
		if out[1] == "" {
			out[1] = out[0]
		}
		return out, nil
	}
	if engineKey(args[0]) != "onnx" {
		return out, nil
	}
	path, err := open.ModelFile(ctx, args[0], note)
	if err != nil {
		return out, err
	}
	if beside := model.ConfigBeside(path, "preprocessor_config.json"); beside != "" {
		out[1] = jsonText(beside)
	} else if _, text, found, err := open.RecordedPreprocess(path); found || err != nil {
		return [2]string{"", asValue(text)}, err
	} else if !uri.IsURL(args[0]) {
		note(fmt.Sprintf("no preprocessing is known for %s: both models get images with values from 0 to 1; set --preprocess", args[0]))
	}
	return out, nil
}

// A modelForm describes one of the models.
type modelForm struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
	Form   string `json:"form"` // "float", or how it is quantised
	Half   string `json:"half,omitempty"`
}

func formOf(m *model.Model) modelForm {
	form := modelForm{Path: m.Path(), SHA256: m.SHA256(), Form: parity.Form(m)}
	if m.Graph() == nil {
		return form
	}
	if file, err := onnx.Read(m.Path()); err == nil { // it could be read before, with float32 for half precision
		if half := rewrite.HalfPrecision(file); half != onnx.Undefined {
			form.Half = half.String()
		}
	}
	return form
}
