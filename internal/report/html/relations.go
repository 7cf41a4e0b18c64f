package html

import (
	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/scores/correlation"
)

// A relationData is a report.Relation in the data of a page.
type relationData struct {
	Score string         `json:"score"` // MEASURE.STATISTIC@TRANSFORM
	Name  string         `json:"name"`  // title of the score in the list of scores
	By    correlation.By `json:"by"`    // whether a point is a model or a data set
	Of    string         `json:"of"`    // the data set shared by all models, or the model shared by all data sets
	Chart report.Scatter `json:"chart"`
	Text  string         `json:"text"` // how to read the chart, and how well the score predicts accuracy
}

// packRelations returns the relations of scores with accuracy.
func packRelations(rows []scores.Row, record *scores.Record) []relationData {
	var out []relationData
	for _, r := range report.Relations(rows, record) {
		score := r.Measure + "." + r.Statistic + "@" + r.Transform
		out = append(out, relationData{score, r.Name(), r.By, r.Of, r.Scatter(), r.Sentence()})
	}
	return out
}
