package report

import (
	"slices"

	"github.com/noether-ml/noether/scores"
)

// A SheetValue is the value of a statistic for one sample on a contact sheet.
type SheetValue struct {
	Model     string  `json:"model"` // of a comparison: FIRST → SECOND
	Data      string  `json:"data"`
	Transform string  `json:"transform"`
	Parameter string  `json:"parameter"` // value of the transformation's parameter
	Measure   string  `json:"measure"`
	Statistic string  `json:"statistic"`
	Sample    int     `json:"sample"` // index in the data set
	Value     float64 `json:"value"`
}

// maxSheetValues bounds the values, and with them the size of a page.
const maxSheetValues = 20_000

// sheetValues collects the per-sample values of predictions for the samples on contact sheets, of
// the first trial.
type sheetValues struct {
	sheets []*scores.Sheet
	values []SheetValue
}

// sheetsOf returns a sheetValues for the contact sheets among images.
func sheetsOf(images []Image) *sheetValues {
	out := &sheetValues{}
	for _, i := range images {
		if i.Sheet != nil {
			out.sheets = append(out.sheets, i.Sheet)
		}
	}
	return out
}

// add adds the value of a row if its sample is on a sheet.
func (v *sheetValues) add(r *scores.SampleRow) {
	if r.Layer != "" || r.Trial != 0 || !finite(r.Value) || len(v.values) == maxSheetValues {
		return
	}
	if !slices.ContainsFunc(v.sheets, func(s *scores.Sheet) bool {
		return s.Transform == r.Transform && s.Data == r.Data && slices.Contains(s.Samples, r.Index)
	}) {
		return
	}
	model := r.Model
	if r.OtherModel != "" {
		model += " → " + r.OtherModel
	}
	v.values = append(v.values, SheetValue{model, r.Data, r.Transform, r.Parameter, r.Measure, r.Statistic, r.Index, r.Value})
}
