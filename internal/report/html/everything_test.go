package html

import (
	"math/rand/v2"
	"testing"

	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/internal/report/internal/reporttest"
	"github.com/noether-ml/noether/scores"
)

// runWithAllCharts returns a run that has something for each kind of chart. FakeRun generates its
// scores, with similarities of 4 layers with each other (PairedLayers). Tags are a study's own
// properties of models. The image shows inversions: images found by gradient descent, whose
// representation equals that of a given image, as for the measure stir.
func runWithAllCharts(t testing.TB) Run {
	rows, rec := reporttest.FakeRun{Models: 6, Layers: 8, Transforms: 3, Classes: 3, PairedLayers: 4}.Rows()
	for i := range rec.Models {
		rec.Models[i].Tags = map[string]string{"family": []string{"resnet", "vit"}[i%2], "depth": []string{"20", "56", "12"}[i%3]}
	}
	found, _, err := report.Distribute(sampleValues(rec))
	if err != nil {
		t.Fatal(err)
	}
	return Run{Rows: rows, Record: rec, Attachments: report.Attachments{Distributions: found, Images: []report.Image{{
		ImageText: report.ImageText{Title: "Inversions", Caption: "Each image beside one that the model maps to the same representation.", Measure: "stir", Model: rec.Models[0].Name},
		Width:     64, Height: 32, PNG: reporttest.Checkerboard(64, 32),
	}}}}
}

// sampleValues returns effective invariances (0 if the prediction changes, else its confidence) of
// 500 samples for each model and transformation. Of a later model more are above 0.
func sampleValues(rec scores.Record) report.Values {
	return func(each func(report.Subject, float64)) error {
		r := rand.New(rand.NewPCG(3, 4))
		for m, model := range rec.Models {
			for _, transform := range []string{"quarter", "gray"} {
				for range 500 {
					v := 0.0
					if r.Float64() < 0.5+0.07*float64(m) {
						v = 1 - 0.4*r.Float64()*r.Float64()
					}
					each(report.Subject{Of: "sample", Model: model.Name, Data: "cifar10", Transform: transform, Measure: "effective-invariance", Statistic: "ei"}, v)
				}
			}
		}
		return nil
	}
}
