package report

import (
	"io"
	"os"
	"slices"

	"github.com/noether-ml/noether/scores"
)

// A SheetValue is the value of a statistic for one sample on a contact sheet.
type SheetValue struct {
	Model     string  `json:"model"`
	Data      string  `json:"data"`
	Transform string  `json:"transform"`
	Parameter string  `json:"parameter"`
	Measure   string  `json:"measure"`
	Statistic string  `json:"statistic"`
	Sample    int     `json:"sample"` // index in the data set
	Value     float64 `json:"value"`
}

// maxSheetValues bounds the values, and with them the size of a page.
const maxSheetValues = 20_000

// readSheetValues returns the per-sample values of predictions for the samples on contact sheets,
// of the first trial, from samples.parquet. There are none if the study did not keep per-sample
// values.
func readSheetValues(root *os.Root, images []Image) ([]SheetValue, error) {
	var sheets []*scores.Sheet
	for _, i := range images {
		if i.Sheet != nil {
			sheets = append(sheets, i.Sheet)
		}
	}
	if sheets == nil {
		return nil, nil
	}
	var out []SheetValue
	err := readFile(root, "samples.parquet", func(f io.ReaderAt, size int64) error {
		return scores.ReadSamples(f, size, func(r scores.SampleRow) {
			if r.Layer != "" || r.Trial != 0 || !finite(r.Value) || len(out) == maxSheetValues {
				return
			}
			if slices.ContainsFunc(sheets, func(s *scores.Sheet) bool {
				return s.Transform == r.Transform && s.Data == r.Data && slices.Contains(s.Samples, r.Index)
			}) {
				if r.OtherModel != "" {
					r.Model += " → " + r.OtherModel
				}
				out = append(out, SheetValue{r.Model, r.Data, r.Transform, r.Parameter, r.Measure, r.Statistic, r.Index, r.Value})
			}
		})
	})
	return out, err
}
