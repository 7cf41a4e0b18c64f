package html

import (
	"encoding/base64"

	"github.com/noether-ml/noether/report"
	"github.com/noether-ml/noether/scores"
)

// distributionData is a Distribution in the data of a page.
type distributionData struct {
	Of        string  `json:"of"`
	Model     string  `json:"model"`
	Layer     string  `json:"layer"`
	Depth     int     `json:"depth"`
	Data      string  `json:"data"`
	Transform string  `json:"transform"`
	Parameter string  `json:"parameter"`
	Measure   string  `json:"measure"`
	Factor    string  `json:"factor"`
	Statistic string  `json:"statistic"`
	Ends      numbers `json:"ends"`
	Counts    []int   `json:"counts"`
	Mean      numbers `json:"mean"`
	Text      string  `json:"text"`
	Units     string  `json:"units"`
}

func packDistributions(all []report.Distribution, models []scores.ModelRecord) []distributionData {
	depth := depths(models)
	out, units := make([]distributionData, len(all)), report.MiddleUnits(all)
	for i, d := range all {
		out[i] = distributionData{d.Of, report.Printable(d.Model), report.Printable(d.Layer), depth(d.Model, d.Layer), report.Printable(d.Data), report.Printable(d.Transform), report.Printable(d.Parameter),
			report.Printable(d.Measure), report.Printable(d.Factor), report.Printable(d.Statistic), numbers{d.Low, d.High}, d.Counts, numbers{d.Mean},
			report.Printable(d.Sentence()), report.Printable(units[i])}
	}
	return out
}

type packedCurve struct {
	Model     string  `json:"model"`
	Layer     string  `json:"layer"`
	Depth     int     `json:"depth"`
	Data      string  `json:"data"`
	Transform string  `json:"transform"`
	Measure   string  `json:"measure"`
	Factor    string  `json:"factor"`
	Unit      int     `json:"unit"`
	Threshold numbers `json:"threshold"`
	Sign      int     `json:"sign"`
	Amounts   numbers `json:"amounts"`
	Values    numbers `json:"values"`
	Text      string  `json:"text"`
	Firing    numbers `json:"firing"`
}

func packCurves(all []report.TuningCurve, models []scores.ModelRecord) []packedCurve {
	depth := depths(models)
	out := make([]packedCurve, len(all))
	for i, c := range all {
		out[i] = packedCurve{report.Printable(c.Model), report.Printable(c.Layer), depth(c.Model, c.Layer), report.Printable(c.Data), report.Printable(c.Transform), report.Printable(c.Measure), report.Printable(c.Factor),
			c.Unit, numbers{c.Threshold}, c.Sign, c.Amounts, c.Values, c.Sentence(), numbers{c.Firing()}}
	}
	return out
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
		if out[i].Alt == "" {
			out[i].Alt = out[i].Caption
		}
		if out[i].Alt == "" {
			out[i].Alt = out[i].Title
		}
	}
	return out
}
