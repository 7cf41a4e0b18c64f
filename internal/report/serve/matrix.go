package serve

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/internal/report"
)

// maxMatrixRuns is the maximum number of runs, the latest, whose scores the first page shows.
const maxMatrixRuns = 24

// A runMatrix shows one statistic of the models of several runs (executions of studies) on a data
// set: a line for each model of a run, and a column for each transformation.
type runMatrix struct {
	Title   string // of the statistic
	About   string // what its values mean, one sentence
	Toward  string // which values are the better or the more invariant ones: "higher is ..." or "lower is ..."
	Data    string
	Null    bool // some score has a null, its value by chance
	Columns []string
	Lines   []matrixLine
	More    int // runs that are left out
}

type matrixLine struct {
	Run   runJSON
	Model string
	Cells []*matrixCell // for each column; nil if there is no score
}

// A matrixCell is a score with its interval and its null. The fields that end in 100 are places on
// the scale of values, in percent of the width of a cell.
type matrixCell struct {
	Value, Low, High, Null          float64
	Shade                           int  // 0 to 10; see report.MatrixCell
	Chance                          bool // no better than the null
	At100, Low100, High100, Null100 float64
	HasInterval, HasNull            bool
}

// Text describes the cell in words.
func (c matrixCell) Text() string {
	text := report.Number(c.Value)
	if c.HasInterval {
		text += ", 95 % interval " + report.Interval(c.Low, c.High)
	}
	if c.HasNull {
		text += ", chance " + report.Number(c.Null)
	}
	if c.Chance {
		text += ", no better than chance"
	}
	return text
}

// A matrixChoice is a statistic and a data set that a matrix can show. Key is that of matrixKey.
type matrixChoice struct{ Key, Title string }

// A packedMatrix is a report.Matrix of a run with its scores.
type packedMatrix struct {
	report.Matrix
	Scores []packedScore `json:"scores"` // of its cells
}

// A packedScore is a score; values that are not finite are nil.
type packedScore struct{ Value, Low, High, Null *float64 }

// matrices returns the matrices of models by transformations of a run. They are cached.
func (s *Server) matrices(r *run) (out []packedMatrix, err error) {
	text, err := s.pages.get("matrices "+r.id, r.stamp(), func() ([]byte, error) {
		record, err := r.record()
		if err != nil {
			return nil, err
		}
		rows, err := s.rows(r, record)
		if err != nil {
			return nil, err
		}
		packed := []packedMatrix{}
		for _, m := range report.Matrices(rows, record.Measures) {
			if m.Across != "name" { // the columns are not names of transformations
				continue
			}
			p := packedMatrix{Matrix: m}
			for _, c := range m.Cells {
				row := rows[c.Row]
				p.Scores = append(p.Scores, packedScore{finiteOrNil(row.Value), finiteOrNil(row.Low), finiteOrNil(row.High), finiteOrNil(row.Null)})
			}
			packed = append(packed, p)
		}
		return json.Marshal(packed)
	})
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	return out, err
}

func finiteOrNil(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

func orNaN(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// matrixKey identifies what a matrix shows, across runs.
func matrixKey(m report.Matrix) string {
	return fmt.Sprintf("%s.%s on %s", m.Section, m.Statistic, m.Data)
}

// overview returns a matrix of the latest runs, and what matrices can show, the most frequent
// first. The matrix is the one that key names, or else the first of these. It is nil if no run has
// scores under transformations.
func (s *Server) overview(runs []runJSON, key string) (*runMatrix, []matrixChoice) {
	type found struct {
		run    runJSON
		matrix packedMatrix
	}
	byKey := map[string][]found{}
	var choices []matrixChoice
	shown := runs[:min(len(runs), maxMatrixRuns)]
	for _, r := range shown {
		run, err := s.library.run(r.ID)
		if err != nil {
			continue // it was removed
		}
		matrices, err := s.matrices(run)
		if err != nil {
			continue // its page says what is wrong
		}
		for _, m := range matrices {
			k := matrixKey(m.Matrix)
			if byKey[k] == nil {
				choices = append(choices, matrixChoice{k, m.Title + " on " + m.Data})
			}
			byKey[k] = append(byKey[k], found{r, m})
		}
	}
	if len(choices) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(choices, func(a, b matrixChoice) int { return len(byKey[b.Key]) - len(byKey[a.Key]) })
	if byKey[key] == nil {
		key = choices[0].Key
	}
	first := byKey[key][0].matrix
	out := &runMatrix{Title: first.Title, About: first.Meaning, Toward: first.Toward, Data: first.Data, More: len(runs) - len(shown)}
	for _, f := range byKey[key] {
		for _, c := range f.matrix.Columns {
			if !slices.Contains(out.Columns, c) {
				out.Columns = append(out.Columns, c)
			}
		}
	}
	for _, f := range byKey[key] {
		for i, model := range f.matrix.Models {
			line := matrixLine{Run: f.run, Model: model, Cells: make([]*matrixCell, len(out.Columns))}
			for k, c := range f.matrix.Cells {
				if c.Model != i || k >= len(f.matrix.Scores) {
					continue
				}
				cell := newMatrixCell(f.matrix.Matrix, c, f.matrix.Scores[k])
				out.Null = out.Null || cell.HasNull
				line.Cells[slices.Index(out.Columns, f.matrix.Columns[c.Column])] = cell
			}
			out.Lines = append(out.Lines, line)
		}
	}
	return out, choices
}

// newMatrixCell returns a cell of a run's matrix with its score.
func newMatrixCell(m report.Matrix, c report.MatrixCell, s packedScore) *matrixCell {
	toPercent := func(v *float64) float64 { // with a margin of 4 % at both ends
		if v == nil || m.High <= m.Low {
			return 0
		}
		return 4 + 92*min(1, max(0, (*v-m.Low)/(m.High-m.Low)))
	}
	return &matrixCell{Value: orNaN(s.Value), Low: orNaN(s.Low), High: orNaN(s.High), Null: orNaN(s.Null), Shade: int(math.Round(10 * c.Shade)), Chance: c.Chance,
		At100: toPercent(s.Value), Low100: toPercent(s.Low), High100: toPercent(s.High), Null100: toPercent(s.Null), HasInterval: s.Low != nil && s.High != nil, HasNull: s.Null != nil}
}

// selected returns key if a choice has it, or else the key of the first choice. There must be one.
func selected(choices []matrixChoice, key string) string {
	if i := slices.IndexFunc(choices, func(c matrixChoice) bool { return c.Key == key }); i >= 0 {
		return key
	}
	return choices[0].Key
}
