// Package reporttest generates runs for tests of the report.
package reporttest

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// A FakeRun describes the size of a generated run.
type FakeRun struct {
	Models, Layers, Transforms int
	Data                       int // number of data sets; 0 counts as 1
	Classes                    int // number of classes with scores; may be 0
	// Number of layers of model 0 that are compared with each other and, if above 1, with as many of
	// model 1.
	PairedLayers int
	Unfinished   bool                            // the run has not finished
	NameOf       func(kind string, i int) string // nil means ordinary names
}

var (
	modelNames     = []string{"resnet20", "resnet56", "vit-tiny", "convnext-s"}
	transformNames = []string{"quarter", "gray", "jitter", "blur"}
	classNames     = []string{"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"}
)

// Name returns the name of the i-th "model", "transform", "class", "data", "tensor" (of the graph)
// or "layer". NameOf is also called for "study".
func (f FakeRun) Name(kind string, i int) string {
	if f.NameOf != nil {
		return f.NameOf(kind, i)
	}
	pick := func(names []string) string {
		if i < len(names) {
			return names[i]
		}
		return fmt.Sprintf("%s-%02d", kind, i)
	}
	switch kind {
	case "model":
		return pick(modelNames)
	case "transform":
		return pick(transformNames)
	case "class":
		return pick(classNames)
	case "tensor":
		return fmt.Sprintf("/block%d/conv%d/Conv_output_0", i/6, i)
	case "data":
		return []string{"cifar10", "cifar10-c"}[i%2]
	default:
		return fmt.Sprintf("/layer%d/layer%d.%d/relu%d/Relu_output_0", 1+i/6, 1+i/6, i/2%3, 1+i%2)
	}
}

// Rows returns the rows and the record of the generated run.
func (f FakeRun) Rows() ([]scores.Row, scores.Record) {
	r := rand.New(rand.NewPCG(1, 2))
	var rows []scores.Row
	rec := f.record()
	for d := range max(1, f.Data) {
		for m := range f.Models {
			for t := range f.Transforms {
				// Depth -1 is that of no layer; a trial is a repetition of all random draws.
				at := scores.Row{Study: rec.Study, Model: f.Name("model", m), Data: f.Name("data", d),
					Transform: f.Name("transform", t), Depth: -1, Trial: 0}
				rows = append(rows, f.predictions(r, at, m, t)...)
				rows = append(rows, f.depths(r, at, m, t)...)
			}
		}
	}
	return append(rows, f.pairs(r)...), rec
}

// pairs returns similarities of the first layers of model 0 with those of model 1, and of model 0
// with itself.
func (f FakeRun) pairs(r *rand.Rand) []scores.Row {
	var rows []scores.Row
	for other := range min(2, f.PairedLayers) {
		for a := range f.PairedLayers {
			for b := range f.PairedLayers {
				value := math.Exp(-0.15*math.Abs(float64(a-b))) * (1 - 0.1*float64(other)*r.Float64())
				rows = append(rows, scores.Row{Study: "cifar-rotation", Model: f.Name("model", 0), OtherModel: f.Name("model", other), Data: f.Name("data", 0),
					Layer: f.Name("layer", a), Depth: 3 + 5*a, OtherLayer: f.Name("layer", b),
					Measure: "similarity", Statistic: "linear-cka", Value: value, Low: value - 0.02, High: value + 0.02, Null: 0.05, N: 2000})
			}
		}
	}
	return rows
}

// parameters returns the column parameter of a transformation's rows: "" is the mean over all
// values. Only the first transformation has a list of values.
func parameters(t int) []string {
	if t == 0 {
		return []string{"90", "180", "270", ""}
	}
	return []string{""}
}

// predictions returns the scores of the predictions of model m under transformation t. at holds
// what the rows share. The numbers are arbitrary; only their order of magnitude is that of real
// scores.
func (f FakeRun) predictions(r *rand.Rand, at scores.Row, m, t int) []scores.Row {
	var rows []scores.Row
	for k, parameter := range parameters(t) {
		ei := 0.4 + 0.12*float64(m%4) + 0.17*float64(t) - 0.05*float64(k%2) + 0.02*r.Float64()
		ei = min(ei, 0.985)
		clean := 0.81 + 0.015*float64(m%4)
		// half is half of the width of the interval; null is the value that chance alone gives.
		add := func(measure, statistic string, value, half, null float64) {
			row := at
			row.Measure, row.Statistic, row.Parameter = measure, statistic, parameter
			row.Value, row.Low, row.High, row.Null, row.N = value, value-half, value+half, null, 2000
			rows = append(rows, row)
			for c := range f.Classes {
				row.Factor, row.N = "class="+f.Name("class", c), 200
				row.Value = value * (0.85 + 0.3*r.Float64())
				row.Low, row.High = row.Value-3*half, row.Value+3*half
				rows = append(rows, row)
			}
		}
		// clean: on the samples; moved: on the transformed samples.
		add("accuracy", "clean", clean, 0.017, math.NaN())
		add("accuracy", "moved", clean*ei, 0.021, math.NaN())
		add("accuracy", "drop", clean-clean*ei, 0.018, math.NaN())
		add("effective-invariance", "ei", ei, 0.018, 0.09)
		add("prediction-divergence", "js", 0.55*(1-ei), 0.011, 0.52)
		add("prediction-divergence", "kl", 4.1*(1-ei), 0.21, 5.1)
		add("prediction-divergence", "l2", 1.1*(1-ei), 0.03, 1.02)
		add("prediction-divergence", "agreement", min(1, ei+0.06), 0.02, 0.1)
	}
	return rows
}

// depths returns the scores of the layers of model m under transformation t, as curves over depth
// with a little noise. at holds what the rows share.
func (f FakeRun) depths(r *rand.Rand, at scores.Row, m, t int) []scores.Row {
	var rows []scores.Row
	for l := range f.Layers {
		x := float64(l) / float64(max(1, f.Layers-1)) // relative depth
		for k, parameter := range parameters(t) {
			add := func(measure, statistic string, value, half, null float64, n int, warning string) {
				row := at
				row.Layer, row.Depth = f.Name("layer", l), 3+5*l+m%3
				row.Measure, row.Statistic, row.Parameter, row.Warning = measure, statistic, parameter, warning
				row.Value, row.Low, row.High, row.Null, row.N = value, value-half, value+half, null, n
				rows = append(rows, row)
			}
			equivariance := 0.95 - (0.55-0.1*float64(m%4))*x*x - 0.03*float64(k) + 0.015*r.NormFloat64() + 0.01*float64(t)
			invariance := 0.15 + 0.5*x/(1+math.Exp(-8*(x-0.5))) + 0.12*float64(t) + 0.01*r.NormFloat64()
			warning := ""
			if l == 0 {
				warning = "pooled from 112 x 112 to 56 x 56 positions"
			}
			add("seis", "equivariance", min(equivariance, 0.99), 0.01+0.02*x, 0.08+0.14*x, 32000*(l+1), warning)
			add("seis", "invariance", invariance, 0.015, 0.05+0.03*x, 32000*(l+1), "")
			add("seis", "rank", math.Round(900*math.Exp(-3*x)), math.NaN(), math.NaN(), 32000*(l+1), "")
			cosine := 0.03 + 0.32*x*(1-0.2*float64(m%4)) - 0.005*float64(t)
			add("distance", "cosine", cosine, 0.006, 0.2+0.4*x, 2000, "")
			add("distance", "relative-l2", math.Sqrt(2*cosine), 0.01, math.Sqrt(2*(0.2+0.4*x)), 2000, "")
			add("distance", "l1", 8000*math.Exp(-3*x)*(1+0.2*float64(m%4)), 90, 16000*math.Exp(-3*x), 2000, "")
			add("distance", "l2", 140*math.Exp(-2*x)*(1+0.2*float64(m%4)), 3, 260*math.Exp(-2*x), 2000, "")
		}
	}
	return rows
}

// record returns the record of the run.
func (f FakeRun) record() scores.Record {
	started := time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC)
	finished := started.Add(192 * time.Second)
	rec := scores.Record{
		Study: "cifar-rotation", Measures: Measures(), Noether: "0.1.0", Started: started, Finished: &finished, Cells: 30, Done: 30,
		Engine: scores.EngineRecord{ONNXRuntime: "1.24.1", Device: "cpu", BLAS: "OpenBLAS", Threads: 2, Machine: "linux/amd64"},
		Skipped: []scores.Skip{
			{Model: f.Name("model", 0), Layer: "logits", Measure: "seis", Why: "the layer has no space"},
			{Model: f.Name("model", 1), Layer: "logits", Measure: "seis", Why: "the layer has no space"},
		},
		Warnings: []string{"12 of 2,000 images did not decode and were left out"},
	}
	if f.Unfinished {
		rec.Finished, rec.Done = nil, 12
	}
	if f.NameOf != nil {
		rec.Study = f.NameOf("study", 0)
	}
	for m := range f.Models {
		model := scores.ModelRecord{Name: f.Name("model", m), Path: "models/" + f.Name("model", m) + ".onnx",
			SHA256: strings.Repeat(fmt.Sprintf("%02x", 17*m+40), 32), Opset: 13, Tags: map[string]string{"family": "resnet", "training": "standard"}}
		for l := range f.Layers {
			model.Layers = append(model.Layers, scores.LayerRecord{Name: f.Name("layer", l), Op: "Relu", Depth: 3 + 5*l, Shape: []int{16, 32, 32}, Axes: "NCHW"})
		}
		rec.Models = append(rec.Models, model)
	}
	for d := range max(1, f.Data) {
		rec.Data = append(rec.Data, scores.DataRecord{Name: f.Name("data", d), Kind: "cifar10", N: 2000, Fingerprint: strings.Repeat("ab12", 16)})
	}
	rec.Resolved = "name: " + rec.Study + "\nseed: 1\ndata:\n  - {name: cifar10, cifar10: data/test_batch.bin, limit: 2000}\n" +
		"transforms:\n  - {name: quarter, rotate: {values: [90, 180, 270]}}\nmeasures:\n  - accuracy\n  - seis: {variance: 0.99}\n"
	return rec
}

// UsualRun is the default run of tests.
var UsualRun = FakeRun{Models: 2, Layers: 20, Transforms: 3}

// Checkerboard returns a PNG of w x h pixels with black and white squares of 4 x 4 pixels.
func Checkerboard(w, h int) []byte {
	m := image.NewGray(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.SetGray(x, y, color.Gray{Y: uint8(255 * ((x/4 + y/4) % 2))})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// Measures returns the descriptors of all measures.
func Measures() []measure.Descriptor { return catalog.Descriptors() }
