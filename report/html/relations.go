package html

import (
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/report"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/scores/correlation"
)

// A relationData is a Relation in the data of a page.
type relationData struct {
	X      packedAxis     `json:"x"`
	By     correlation.By `json:"by"`
	Of     string         `json:"of"`
	Points []packedPoint  `json:"points"`
	Fit    *fitData       `json:"fit"` // null if there is no line
	Text   string         `json:"text"`
}

type packedAxis struct {
	Measure   string `json:"measure"`
	Statistic string `json:"statistic"`
	Transform string `json:"transform"`
	Title     string `json:"title"`
}

type packedPoint struct {
	Label string  `json:"label"`
	X     float64 `json:"x"`
	Y     float64 `json:"y"`
	N     int     `json:"n"`
}

type fitData struct {
	Line []numbers `json:"line"` // x, y, low, high; y as a proportion
}

const linePoints = 25

func packRelations(rows []scores.Row, known []measure.Descriptor) []relationData {
	var out []relationData
	for _, r := range report.Relations(rows, known) {
		p := relationData{X: packedAxis{r.Measure, r.Statistic, report.Printable(r.Transform), r.Title}, By: r.By, Of: report.Printable(r.Of), Fit: sampleFit(r), Text: report.Printable(r.Sentence())}
		for _, at := range r.Points {
			p.Points = append(p.Points, packedPoint{report.Printable(at.Label), at.X, at.Y, at.N})
		}
		out = append(out, p)
	}
	return out
}

// sampleFit samples the line of a relation and its band at equal steps.
func sampleFit(r report.Relation) *fitData {
	if r.Fit == nil {
		return nil
	}
	low, high := r.Points[0].X, r.Points[0].X
	for _, p := range r.Points {
		low, high = min(low, p.X), max(high, p.X)
	}
	out := &fitData{}
	for i := range linePoints {
		x := low + (high-low)*float64(i)/(linePoints-1)
		y := r.Fit.At(x)
		out.Line = append(out.Line, numbers{x, y.Value, y.Low, y.High})
	}
	return out
}
