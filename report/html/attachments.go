package html

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/report"
	"github.com/noether-ml/noether/scores"
)

// binTable has a row for each bin of each distribution.
func binTable(all []report.Distribution, models []scores.ModelRecord) tableData {
	type bin struct {
		of *report.Distribution
		i  int
	}
	var bins []bin
	for i := range all {
		for k := range all[i].Counts {
			bins = append(bins, bin{&all[i], k})
		}
	}
	depth := depths(models)
	edge := func(b bin, i int) float64 {
		return b.of.Low + (b.of.High-b.of.Low)*float64(i)/float64(len(b.of.Counts))
	}
	t := newTable(bins, []columnData{{"model", ""}, {"layer", ""}, {"data", ""}, {"transform", ""}, {"parameter", ""}, {"factor", ""},
		{"from", "from"}, {"to", "to"}, {"count", "count"}, {"share", "share"}, {"mean", "mean"}})
	subject := func(b bin) *report.Subject { return &b.of.Subject }
	t.Texts = subjectTexts(bins, subject)
	t.Texts["text"] = packText(bins, func(b bin) string { return b.of.Sentence() })
	t.Numbers = map[string]numbers{
		"depth": packNumber(bins, func(b bin) float64 { return float64(depth(b.of.Model, b.of.Layer)) }),
		"from":  packNumber(bins, func(b bin) float64 { return edge(b, b.i) }),
		"to":    packNumber(bins, func(b bin) float64 { return edge(b, b.i+1) }),
		"count": packNumber(bins, func(b bin) float64 { return float64(b.of.Counts[b.i]) }),
		"share": packNumber(bins, func(b bin) float64 { return float64(b.of.Counts[b.i]) / float64(b.of.N()) }),
		"mean":  packNumber(bins, func(b bin) float64 { return b.of.Mean }),
	}
	return t
}

// ranks is the number of equal shares of the units of a layer, ordered by their values.
const ranks = 40

// rankTable has a row for each share of the units of each layer.
func rankTable(all []report.Distribution, models []scores.ModelRecord) tableData {
	type rank struct {
		of   *report.Distribution
		text string
		i    int
	}
	var rows []rank
	sentences := report.MiddleUnits(all)
	for i := range all {
		for k := range ranks {
			if all[i].Of == "unit" {
				rows = append(rows, rank{&all[i], sentences[i], k})
			}
		}
	}
	depth := depths(models)
	t := newTable(rows, []columnData{{"model", ""}, {"layer", ""}, {"depth", "depth"}, {"factor", ""}, {"from", "from, of the units"}, {"to", "to, of the units"}, {"value", "value"}, {"n", "units"}})
	t.Texts = subjectTexts(rows, func(r rank) *report.Subject { return &r.of.Subject })
	t.Texts["text"] = packText(rows, func(r rank) string { return r.text })
	t.Numbers = map[string]numbers{
		"depth": packNumber(rows, func(r rank) float64 { return float64(depth(r.of.Model, r.of.Layer)) }),
		"from":  packNumber(rows, func(r rank) float64 { return float64(r.i) / ranks }),
		"to":    packNumber(rows, func(r rank) float64 { return float64(r.i+1) / ranks }),
		"value": packNumber(rows, func(r rank) float64 { return r.of.Quantile((float64(r.i) + 0.5) / ranks) }),
		"n":     packNumber(rows, func(r rank) float64 { return float64(r.of.N()) }),
	}
	return t
}

// stepTable has a row for each step of each tuning curve.
func stepTable(all []report.TuningCurve, models []scores.ModelRecord) tableData {
	type step struct {
		of            *report.TuningCurve
		amount, value float64
	}
	var steps []step
	for i := range all {
		c := &all[i]
		first := len(steps)
		for k, v := range c.Values {
			steps = append(steps, step{c, c.Amounts[k], v})
		}
		slices.SortStableFunc(steps[first:], func(a, b step) int { return cmp.Compare(a.amount, b.amount) })
	}
	depth := depths(models)
	t := newTable(steps, []columnData{{"model", ""}, {"layer", ""}, {"factor", ""}, {"unit", "unit"}, {"amount", "amount"}, {"value", "value"}, {"threshold", "threshold"}, {"fires", "fires"}})
	t.Texts = subjectTexts(steps, func(s step) *report.Subject {
		return &report.Subject{Of: "step", Model: s.of.Model, Layer: s.of.Layer, Data: s.of.Data, Transform: s.of.Transform, Measure: s.of.Measure, Factor: s.of.Factor}
	})
	delete(t.Texts, "statistic")
	t.Texts["unit"] = packText(steps, func(s step) string { return fmt.Sprint("unit ", s.of.Unit) })
	t.Texts["fires"] = packText(steps, func(s step) string {
		if s.of.Fires(s.value) {
			return "yes"
		}
		return "no"
	})
	t.Texts["text"] = packText(steps, func(s step) string { return s.of.Sentence() })
	firing := make(map[*report.TuningCurve]float64, len(all))
	for i := range all {
		firing[&all[i]] = all[i].Firing()
	}
	t.Numbers = map[string]numbers{
		"depth":     packNumber(steps, func(s step) float64 { return float64(depth(s.of.Model, s.of.Layer)) }),
		"amount":    packNumber(steps, func(s step) float64 { return s.amount }),
		"value":     packNumber(steps, func(s step) float64 { return s.value }),
		"threshold": packNumber(steps, func(s step) float64 { return s.of.Threshold }),
		"weight":    packNumber(steps, func(s step) float64 { return firing[s.of] }),
	}
	return t
}

// subjectTexts returns the text columns that the rows of all attachments have.
func subjectTexts[T any](rows []T, subject func(T) *report.Subject) map[string]textColumn {
	return map[string]textColumn{
		"of":        packText(rows, func(r T) string { return subject(r).Of }),
		"model":     packText(rows, func(r T) string { return subject(r).Model }),
		"layer":     packText(rows, func(r T) string { return subject(r).Layer }),
		"data":      packText(rows, func(r T) string { return subject(r).Data }),
		"transform": packText(rows, func(r T) string { return subject(r).Transform }),
		"parameter": packText(rows, func(r T) string { return subject(r).Parameter }),
		"measure":   packText(rows, func(r T) string { return subject(r).Measure }),
		"factor":    packText(rows, func(r T) string { return subject(r).Factor }),
		"statistic": packText(rows, func(r T) string { return subject(r).Statistic }),
	}
}

type packedImage struct {
	Title   string `json:"title"`
	Caption string `json:"caption"`
	Alt     string `json:"alt"`
	Measure string `json:"measure"`
	Model   string `json:"model"`
	Width   int    `json:"width"`
	Height  int    `json:"height"`
	PNG     string `json:"png"`
}

func packImages(images []report.Image) []packedImage {
	out := make([]packedImage, len(images))
	for i, p := range images {
		out[i] = packedImage{report.Printable(p.Title), report.Printable(p.Caption), report.Printable(p.Alt), report.Printable(p.Measure), report.Printable(p.Model), p.Width, p.Height,
			base64.StdEncoding.EncodeToString(p.PNG)}
		out[i].Alt = cmp.Or(out[i].Alt, out[i].Caption, out[i].Title)
	}
	return out
}
