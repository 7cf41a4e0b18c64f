package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/parity"
	"github.com/noether-ml/noether/internal/plural"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/tensor"
)

// A parityReport is what the command parity prints. Intervals are null where there are none.
type parityReport struct {
	Original    modelForm          `json:"original"`
	Other       modelForm          `json:"other"`
	Data        string             `json:"data"`
	Samples     int                `json:"samples"`
	Predictions []parityPrediction `json:"predictions"`            // clean, then under each transformation
	NotCompared string             `json:"not_compared,omitempty"` // why there are no predictions
	Begins      string             `json:"begins,omitempty"`       // the first layer beyond the tolerance
	Worst       []string           `json:"worst"`                  // layers by their own error, the largest first
	Leave       []string           `json:"leave_in_float"`         // the first of these, with half of the squared errors
	Nodes       []string           `json:"nodes_to_exclude"`       // their nodes, as onnxruntime's quantiser takes them
	Layers      []parityLayer      `json:"layers"`
	Unmatched   []string           `json:"unmatched"` // layers of the original without a counterpart
	NoLocal     string             `json:"no_local,omitempty"`
	Warnings    []string           `json:"warnings"`

	tolerance float64
	result    *parity.Result
	verdict   parity.Verdict
	rows      []scores.Row
}

// A parityPrediction compares predictions on clean samples or under a transformation.
type parityPrediction struct {
	Transform string `json:"transform,omitempty"`
	Parameter string `json:"parameter,omitempty"`
	N         int    `json:"n"`

	Outputs            string    `json:"outputs,omitempty"` // boxes or class-map; empty: class scores
	Agreement          *interval `json:"agreement"`
	NegativeFlips      *interval `json:"negative_flips,omitempty"` // right in the original, wrong in the other
	PositiveFlips      *interval `json:"positive_flips,omitempty"`
	Accuracy           string    `json:"accuracy,omitempty"` // map or miou, for boxes and class maps with labels
	AccuracyOriginal   *interval `json:"accuracy_original,omitempty"`
	AccuracyOther      *interval `json:"accuracy_other,omitempty"`
	AccuracyDifference *interval `json:"accuracy_difference,omitempty"`

	InvarianceOriginal   *interval `json:"effective_invariance_original,omitempty"`
	InvarianceOther      *interval `json:"effective_invariance_other,omitempty"`
	InvarianceDifference *interval `json:"effective_invariance_difference,omitempty"`

	// Of boxes and class maps: do they follow the transformation?
	EquivarianceOriginal   *interval `json:"equivariance_original,omitempty"`
	EquivarianceOther      *interval `json:"equivariance_other,omitempty"`
	EquivarianceDifference *interval `json:"equivariance_difference,omitempty"`

	MIoU             *interval      `json:"miou,omitempty"`              // of the two class maps
	IoU              *interval      `json:"iou,omitempty"`               // of pairs of boxes
	ClassFlips       *interval      `json:"class_flips,omitempty"`       // share of pairs of boxes
	ConfidenceChange *interval      `json:"confidence_change,omitempty"` // of pairs of boxes
	Differ           int            `json:"differ,omitempty"`            // samples whose boxes or class maps differ
	Worst            []paritySample `json:"differ_most,omitempty"`       // of these, those that agree least
}

// A paritySample is a sample on which boxes or class maps of two models differ.
type paritySample struct {
	Index     int    `json:"index"`
	Name      string `json:"name"`
	Agreement number `json:"agreement"`
}

type parityLayer struct {
	Layer      string              `json:"layer"`
	Op         string              `json:"op"`
	Fused      []string            `json:"fused,omitempty"` // operators that the other computes in one
	Depth      int                 `json:"depth"`
	Other      string              `json:"other"`
	By         string              `json:"matched_by"`
	Doubt      string              `json:"doubt,omitempty"`
	Quantised  bool                `json:"quantised"`
	Inputs     []string            `json:"inputs"`
	Nodes      []string            `json:"nodes"`
	Own        number              `json:"own"`     // relative l2 distance that the layer adds
	Brought    number              `json:"brought"` // largest relative l2 distance of its inputs
	Statistics map[string]interval `json:"statistics"`
	Local      map[string]interval `json:"local,omitempty"`
	Warnings   []string            `json:"warnings,omitempty"`
}

// warned reports whether a warning includes a text.
func (r *parityReport) warned(text string) bool {
	return slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, text) })
}

func (r *parityReport) warn(text string) {
	if !r.warned(text) {
		r.Warnings = append(r.Warnings, text)
	}
}

// fill completes the report from the scores of the predictions and the layers.
func (r *parityReport) fill(cells []scores.Cell, unmatched []tensor.Layer) {
	r.Samples, r.NoLocal = r.result.N, r.result.NoLocal
	r.Warnings, r.Unmatched = []string{}, []string{}
	quantised := strings.HasPrefix(r.Other.Form, "quantised")
	r.verdict = r.result.Judge(r.tolerance, quantised)
	names := func(layers []*parity.Layer) []string {
		out := []string{}
		for _, l := range layers {
			out = append(out, l.Original.Name)
		}
		return out
	}
	if r.verdict.Begins != nil {
		r.Begins = r.verdict.Begins.Original.Name
	}
	r.Worst, r.Leave, r.Nodes = names(r.verdict.Worst), names(r.verdict.Leave), append([]string{}, r.verdict.Nodes...)
	for _, l := range unmatched {
		r.Unmatched = append(r.Unmatched, l.Name)
	}
	if d := r.result.Dropped; len(d) > 0 {
		var names []string
		for _, p := range d {
			names = append(names, p.Original.Name)
			r.Unmatched = append(r.Unmatched, p.Original.Name)
		}
		r.warn(fmt.Sprintf("%s left out, which order alone matches and whose values differ: %s", plural.Of(len(d), "layer"), strings.Join(names[:min(3, len(names))], ", ")))
	}
	r.addPredictions(cells)
	for i := range r.result.Layers {
		r.addLayer(&r.result.Layers[i])
	}
	for _, f := range []struct {
		which string
		modelForm
	}{{"original", r.Original}, {"other", r.Other}} {
		if f.Half != "" {
			r.warn(fmt.Sprintf("the %s model is %[2]s, and computed in float32: weights and what each operator reads are rounded to %[2]s, sums within an operator are not; a device may sum otherwise", f.which, f.Half))
		}
	}
	if r.NoLocal != "" {
		r.warn("no local errors: " + r.NoLocal)
	}
	if r.verdict.Unnamed > 0 {
		r.warn(fmt.Sprintf("%s of the layers to leave in float have no name, by which a quantiser could exclude them: name them first", plural.Of(r.verdict.Unnamed, "node")))
	}
}

func intervalFrom(s measure.Score) interval {
	return interval{number(s.Value), number(s.Low), number(s.High)}
}

func (r *parityReport) addLayer(l *parity.Layer) {
	own, brought := r.result.Own(l), r.result.Brought(l)
	out := parityLayer{Layer: l.Original.Name, Op: l.Original.Op, Fused: l.Fused, Depth: l.Original.Depth, Other: l.Other.Name, By: l.By, Doubt: l.Doubt,
		Quantised: l.Quantised, Inputs: append([]string{}, l.Inputs...), Nodes: append([]string{}, l.Nodes...), Own: number(own), Brought: number(brought),
		Statistics: map[string]interval{}, Warnings: l.Warnings}
	cell := scores.Cell{Model: "original", OtherModel: "other", Data: "data", Measure: parity.MeasureName}
	layer := scores.Layer{Name: l.Original.Name, Other: l.Other.Name, Depth: l.Original.Depth}
	for _, s := range l.Accumulated {
		out.Statistics[s.Statistic] = intervalFrom(s)
		layer.Scores = append(layer.Scores, s)
	}
	if l.Local != nil {
		out.Local = map[string]interval{}
	}
	for _, s := range l.Local {
		out.Local[s.Statistic] = intervalFrom(s)
		s.Statistic = "local-" + s.Statistic
		layer.Scores = append(layer.Scores, s)
	}
	for _, text := range l.Warnings {
		r.warn(fmt.Sprintf("layer %s: %s", l.Original.Name, text))
	}
	cell.Layers = []scores.Layer{layer}
	r.rows = append(r.rows, cell.Rows("")...)
	r.Layers = append(r.Layers, out)
}

// print prints the verdict first, then the layers with the largest errors of their own, or all.
func (r *parityReport) print(w io.Writer, all bool) error {
	width := terminalWidth(os.Stdout)
	printFolded(w, width, "%s (%s) against %s (%s), %s of %s", r.Other.Path, r.Other.Form, r.Original.Path, r.Original.Form, plural.Of(r.Samples, "sample"), r.Data)
	r.printWarnings(w, width, measure.ChangesMeaning)
	fmt.Fprintln(w)
	r.printPredictions(w, width)
	if b := r.verdict.Begins; b != nil {
		printFolded(w, width, "begins: %s%s, whose relative l2 distance is %s; its inputs bring %s, it adds %s", b.Original.Name, fusedText(b), fourDigits(parity.Value(b.Accumulated, parity.RelativeL2)),
			fourDigits(r.result.Brought(b)), fourDigits(r.result.Own(b)))
	} else {
		printFolded(w, width, "no layer differs by a relative l2 distance above %g", r.tolerance)
	}
	if len(r.verdict.Nodes) > 0 {
		printFolded(w, width, "to leave in float, with half of the squared errors (%s of %d): nodes_to_exclude=%s", plural.Of(len(r.verdict.Leave), "layer"), len(r.verdict.Worst), jsonText(r.Nodes))
	}
	fmt.Fprintln(w)
	layers := r.verdict.Worst
	if title := "Layers by what they add:"; all {
		layers = nil
		for i := range r.result.Layers {
			layers = append(layers, &r.result.Layers[i])
		}
	} else if r.verdict.Begins == nil {
		layers = nil // what is left is rounding
	} else if len(layers) > 0 {
		const most = 8
		layers = layers[:min(most, len(layers))]
		fmt.Fprintln(w, title)
	}
	if len(layers) > 0 {
		fmt.Fprint(w, r.layerTable(layers).write(width, 0))
	}
	r.printMatching(w, width)
	r.printWarnings(w, width, func(text string) bool { return !measure.ChangesMeaning(text) })
	return nil
}

// printWarnings prints the warnings that are chosen. Those that change what numbers mean come above
// these.
func (r *parityReport) printWarnings(w io.Writer, width int, chosen func(string) bool) {
	for _, text := range r.Warnings {
		if chosen(text) {
			printFolded(w, width, "warning: %s", text)
		}
	}
}

func fusedText(l *parity.Layer) string {
	if len(l.Fused) == 0 {
		return ""
	}
	return " (" + strings.Join(l.Fused, " + ") + " in one)"
}

func (r *parityReport) layerTable(layers []*parity.Layer) *textTable {
	t := &textTable{header: []string{"layer", "adds", "relative l2", "", "brought", "SNR, dB", "largest", "saturated"}}
	for _, l := range layers {
		value := func(statistic string) string { return fourDigits(parity.Value(l.Accumulated, statistic)) }
		t.rows = append(t.rows, []string{l.Original.Name + fusedText(l), fourDigits(r.result.Own(l)), value(parity.RelativeL2),
			intervalFrom(parity.Score(l.Accumulated, parity.RelativeL2)).bounds(), fourDigits(r.result.Brought(l)), value(parity.SNR), value(parity.Largest), value(parity.Saturated)})
	}
	t.align(1, 2, 4, 5, 6, 7)
	return t
}

// printMatching says how layers were matched.
func (r *parityReport) printMatching(w io.Writer, width int) {
	by, doubts := map[string]int{}, 0
	for _, l := range r.result.Layers {
		by[l.By]++
		if l.Doubt != "" {
			doubts++
		}
	}
	var ways []string
	for _, way := range []string{"name", "module", "order"} {
		if by[way] > 0 {
			ways = append(ways, fmt.Sprintf("%d by %s", by[way], way))
		}
	}
	text := fmt.Sprintf("%d of %s matched: %s", len(r.result.Layers), plural.Of(len(r.result.Layers)+len(r.Unmatched), "layer"), strings.Join(ways, ", "))
	if doubts > 0 {
		text += fmt.Sprintf("; %d of these are one of several layers of their shape, and match by their values", doubts)
	}
	if len(r.Unmatched) > 0 {
		text += "; without a counterpart: " + strings.Join(r.Unmatched[:min(3, len(r.Unmatched))], ", ")
		if more := len(r.Unmatched) - 3; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
	}
	printFolded(w, width, "%s", text)
}

// plainNumber writes a value with its interval, as 0.985 [0.96, 0.99].
func plainNumber(v *interval) string {
	if v == nil {
		return ""
	}
	return strings.TrimSpace(fourDigits(float64(v.Value)) + " " + v.bounds())
}

func difference(v *interval) string {
	if v == nil || math.IsNaN(float64(v.Value)) {
		return ""
	}
	return strings.TrimSpace(signed(float64(v.Value)) + " " + v.bounds())
}
