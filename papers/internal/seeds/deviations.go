package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/noether-ml/noether/measure/resample"
	"github.com/noether-ml/noether/papers/internal/tablefile"
)

// deviations writes a row for each network of the points apart, and a column for each file, TITLE=FILE:
// the mean over seeds of the deviation, with Student's interval. The interval that noether correlate
// gives for each point, that of a single further point, is not used: the seeds are what differs.
func (l *layout) deviations(out io.Writer, files []string) error {
	table := [][]string{{"network", "statistic", "value", "low", "high"}}
	for _, file := range files {
		title, name, ok := strings.Cut(file, "=")
		if !ok {
			return fmt.Errorf("%q: write TITLE=FILE", file)
		}
		raw, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		var results []struct {
			Of    string `json:"of"`
			Apart []struct {
				Label     string `json:"label"`
				Deviation struct {
					Value *float64 `json:"value"`
				} `json:"deviation"`
			} `json:"apart"`
		}
		if err := json.Unmarshal(raw, &results); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		samples, order := map[string]tablefile.Sample{}, []string(nil)
		for _, r := range results {
			if data := l.shown["data"]; len(data) > 0 && !slices.Contains(data, r.Of) {
				continue
			}
			for _, p := range r.Apart {
				t := trainingOf(p.Label)
				if p.Deviation.Value == nil {
					return fmt.Errorf("%s: %s has no deviation", name, p.Label)
				}
				if samples[t.network] == nil {
					samples[t.network], order = tablefile.Sample{}, append(order, t.network)
				}
				if _, ok := samples[t.network][t.seed]; ok {
					return fmt.Errorf("%s: two deviations of %s: choose one data set by -data", name, p.Label)
				}
				samples[t.network][t.seed] = *p.Deviation.Value
			}
		}
		if len(order) == 0 {
			return fmt.Errorf("%s: no point is apart", name)
		}
		for _, network := range order {
			mean, half := resample.Student(samples[network].Values())
			cells := tablefile.Cells(fmt.Sprintf("%%+.%df", l.digits), mean, mean-half, mean+half)
			table = append(table, append([]string{l.rename("network", network), title}, cells...))
		}
	}
	return csv.NewWriter(out).WriteAll(table)
}
