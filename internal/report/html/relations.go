package html

import (
	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/scores/correlation"
)

// A relationData describes how a score of a model's predictions relates to accuracy, over models or
// data sets (see report.Relation), for the front end of the report.
type relationData struct {
	Score string         `json:"score"` // MEASURE.STATISTIC@TRANSFORM
	Name  string         `json:"name"`  // title of the score in the list of scores
	By    correlation.By `json:"by"`    // whether a point is a model or a data set
	Of    string         `json:"of"`    // the data set shared by all models, or the model shared by all data sets
	Chart report.Scatter `json:"chart"`
	Text  string         `json:"text"` // how to read the chart, and how well the score predicts accuracy
}

// packRelations returns the relations of scores with accuracy. rows are the scores of a study, and
// record describes the run that computed them. report.Printable replaces control characters in
// names from the study.
func packRelations(rows []scores.Row, record *scores.Record) []relationData {
	var out []relationData
	for _, r := range report.Relations(rows, record) {
		chart := r.Scatter()
		chart.Title, chart.X = report.Printable(chart.Title), report.Printable(chart.X)
		for i := range chart.Points {
			chart.Points[i].Label = report.Printable(chart.Points[i].Label)
		}
		out = append(out, relationData{r.Measure + "." + r.Statistic + "@" + report.Printable(r.Transform), report.Printable(r.Name()), r.By,
			report.Printable(r.Of), chart, report.Printable(r.Sentence())})
	}
	return out
}
