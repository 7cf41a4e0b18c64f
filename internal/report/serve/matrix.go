package serve

import (
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/scores"
)

// maxMatrixRuns is the maximum number of runs, the latest, whose scores the first page shows.
const maxMatrixRuns = 24

// A runMatrix shows one statistic on a data set: a line for each model of each run, and a column
// for each transformation.
type runMatrix struct {
	Key     string // identifies the statistic and the data set, across runs
	Title   string // of the statistic
	About   string // what its values mean, one sentence
	Toward  string // what a higher or a lower value means
	Data    string
	Null    bool // some score has a null
	Columns []string
	Lines   []matrixLine
	More    int // runs that are left out
}

type matrixLine struct {
	Run   runJSON
	Model string
	Cells []*matrixCell // for each column; nil if there is no score
}

// A matrixCell is a score. The fields that end in 100 are places on its scale, in percent.
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

// A matrixChoice is a statistic and a data set that a matrix can show.
type matrixChoice struct{ Key, Title string }

// matrices returns the matrices of models by transformations of a run, without the run in their
// lines. They are cached.
func (s *Server) matrices(r *run) ([]runMatrix, error) {
	return s.matrixCache.get(r.id, r.stamp(), func() ([]runMatrix, error) {
		record, err := r.record()
		if err != nil {
			return nil, err
		}
		rows, err := s.rows(r, record)
		if err != nil {
			return nil, err
		}
		var out []runMatrix
		for _, m := range report.Matrices(rows, record.Measures) {
			if m.Across != "name" { // the columns are not transformations
				continue
			}
			key := fmt.Sprintf("%s.%s on %s", m.Section, m.Statistic, m.Data)
			own := runMatrix{Key: key, Title: m.Title, About: m.Meaning, Toward: m.Toward, Data: m.Data, Columns: m.Columns}
			for _, model := range m.Models {
				own.Lines = append(own.Lines, matrixLine{Model: model, Cells: make([]*matrixCell, len(m.Columns))})
			}
			for _, c := range m.Cells {
				cell := newMatrixCell(m, c, rows[c.Row])
				own.Null = own.Null || cell.HasNull
				own.Lines[c.Model].Cells[c.Column] = cell
			}
			out = append(out, own)
		}
		return out, nil
	})
}

// matrixBytes estimates the memory of matrices.
func matrixBytes(all []runMatrix) int {
	n := 0
	for _, m := range all {
		n += len(m.Lines) * (1 + len(m.Columns)) * 128
	}
	return n
}

func finiteOrNil(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// overview returns a matrix of the latest runs, the choice that it shows, and what matrices can
// show, the most frequent first. It is what key names, or else the first of these. The matrix is
// nil if no run has scores under transformations.
func (s *Server) overview(runs []runJSON, key string) (*runMatrix, string, []matrixChoice) {
	byKey := map[string][]runMatrix{}
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
			m.Lines = slices.Clone(m.Lines)
			for i := range m.Lines {
				m.Lines[i].Run = r
			}
			if byKey[m.Key] == nil {
				choices = append(choices, matrixChoice{m.Key, m.Title + " on " + m.Data})
			}
			byKey[m.Key] = append(byKey[m.Key], m)
		}
	}
	if len(choices) == 0 {
		return nil, "", nil
	}
	slices.SortStableFunc(choices, func(a, b matrixChoice) int { return len(byKey[b.Key]) - len(byKey[a.Key]) })
	if byKey[key] == nil {
		key = choices[0].Key
	}
	out := byKey[key][0]
	out.More, out.Columns, out.Lines = len(runs)-len(shown), nil, nil
	for _, m := range byKey[key] {
		for _, c := range m.Columns {
			if !slices.Contains(out.Columns, c) {
				out.Columns = append(out.Columns, c)
			}
		}
	}
	for _, m := range byKey[key] {
		out.Null = out.Null || m.Null
		for _, line := range m.Lines {
			cells := make([]*matrixCell, len(out.Columns))
			for k, c := range m.Columns {
				cells[slices.Index(out.Columns, c)] = line.Cells[k]
			}
			out.Lines = append(out.Lines, matrixLine{line.Run, line.Model, cells})
		}
	}
	return &out, key, choices
}

// newMatrixCell returns a cell of a run's matrix.
func newMatrixCell(m report.Matrix, c report.MatrixCell, r scores.Row) *matrixCell {
	toPercent := func(v float64) float64 { // with a margin of 4 % at both ends
		if finiteOrNil(v) == nil || m.High <= m.Low {
			return 0
		}
		return 4 + 92*min(1, max(0, (v-m.Low)/(m.High-m.Low)))
	}
	return &matrixCell{Value: r.Value, Low: r.Low, High: r.High, Null: r.Null, Shade: int(math.Round(10 * c.Shade)), Chance: c.Chance,
		At100: toPercent(r.Value), Low100: toPercent(r.Low), High100: toPercent(r.High), Null100: toPercent(r.Null),
		HasInterval: finiteOrNil(r.Low) != nil && finiteOrNil(r.High) != nil, HasNull: finiteOrNil(r.Null) != nil}
}
