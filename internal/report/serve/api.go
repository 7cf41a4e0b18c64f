package serve

import (
	_ "embed"
	"encoding/json"
	"io"
	"maps"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/noether-ml/noether/internal/parquetfile"
	"github.com/noether-ml/noether/scores"
)

// openAPI describes the JSON interface (OpenAPI 3.1).
//
//go:embed openapi.json
var openAPI []byte

func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json")
	_, err := w.Write(openAPI)
	return err
}

func writeJSON(w http.ResponseWriter, status int, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, err = w.Write(raw)
	return err
}

type runJSON struct {
	ID       string      `json:"id"`
	Name     string      `json:"name"`
	Study    string      `json:"study"`
	Started  time.Time   `json:"started"`
	Finished *time.Time  `json:"finished"`
	Progress Progress    `json:"progress"`
	Models   []modelJSON `json:"models"`
	Data     []dataJSON  `json:"data"`
}

// A modelJSON is a model of a run in the JSON interface.
type modelJSON struct {
	Name   string            `json:"name"`
	SHA256 string            `json:"sha256"`
	Tags   map[string]string `json:"tags"` // labels that the study gives the model
}

// A dataJSON is a data set of a run in the JSON interface.
type dataJSON struct {
	Name        string `json:"name"`
	N           int    `json:"n"`           // number of samples
	Fingerprint string `json:"fingerprint"` // hash of the samples
}

// json returns the run as the JSON interface shows it.
func (r *run) json(record scores.Record) runJSON {
	out := runJSON{ID: r.id, Name: r.name(), Study: record.Study, Started: record.Started, Finished: record.Finished, Progress: r.progress(record),
		Models: []modelJSON{}, Data: []dataJSON{}}
	for _, m := range record.Models {
		tags := map[string]string{}
		maps.Copy(tags, m.Tags)
		out.Models = append(out.Models, modelJSON{m.Name, m.SHA256, tags})
	}
	for _, d := range record.Data {
		out.Data = append(out.Data, dataJSON{d.Name, d.N, d.Fingerprint})
	}
	return out
}

func (s *Server) matchingRuns(query string) []runJSON {
	out := []runJSON{}
	for _, r := range s.library.runs() {
		if record, err := r.record(); err == nil && r.matches(record, query) {
			out = append(out, r.json(record))
		}
	}
	return out
}

func (s *Server) apiRuns(w http.ResponseWriter, r *http.Request) error {
	return writeJSON(w, http.StatusOK, map[string]any{"runs": s.matchingRuns(r.URL.Query().Get("q"))})
}

func (s *Server) apiRun(w http.ResponseWriter, _ *http.Request, run *run) error {
	record, err := run.record()
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, run.json(record))
}

// filterRows returns the rows of a run that match the query parameters of a request.
func (s *Server) filterRows(run *run, r *http.Request) ([]scores.Row, error) {
	record, err := run.resolved()
	if err != nil {
		return nil, err
	}
	rows, err := s.rows(run, record)
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	f := scores.Filter{Measure: q["measure"], Statistic: q["statistic"], Model: q["model"], Data: q["data"], Transform: q["transform"],
		Parameter: q["parameter"], Layer: q["layer"], Variant: q["variant"], Factor: q["factor"]}
	kept := []scores.Row{}
	for i := range rows {
		if f.Matches(&rows[i]) {
			kept = append(kept, rows[i])
		}
	}
	return kept, nil
}

// maxRows is the maximum number of scores in a response of apiScores.
const maxRows = 100_000

func (s *Server) apiScores(w http.ResponseWriter, r *http.Request, run *run) error {
	offset, err := number(r, "offset", 0, math.MaxInt32)
	if err != nil {
		return err
	}
	limit, err := number(r, "limit", maxRows, maxRows)
	if err != nil {
		return err
	}
	return s.send(w, r, response{kind: "application/json", stamp: run.stamp()}, func(w io.Writer) error {
		rows, err := s.filterRows(run, r)
		if err != nil {
			return err
		}
		total := len(rows)
		rows = rows[min(offset, total):min(offset+limit, total)]
		return json.NewEncoder(w).Encode(map[string]any{"total": total, "scores": rows})
	})
}

// number parses an integer query parameter from 0 to maximum; it returns fallback if there is none.
func number(r *http.Request, name string, fallback, maximum int) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return fallback, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > maximum {
		return 0, problemf(http.StatusBadRequest, "%s must be an integer from 0 to %d, not %q", name, maximum, text)
	}
	return n, nil
}

func (s *Server) apiCSV(w http.ResponseWriter, r *http.Request, run *run) error {
	return s.download(w, r, run, "text/csv; charset=utf-8", "scores.csv", scores.WriteCSV)
}

func (s *Server) apiParquet(w http.ResponseWriter, r *http.Request, run *run) error {
	return s.download(w, r, run, "application/vnd.apache.parquet", "scores.parquet", parquetfile.Write)
}

// download sends the rows of a run that match the query parameters as a file, which write encodes.
func (s *Server) download(w http.ResponseWriter, r *http.Request, run *run, kind, name string, write func(w io.Writer, rows []scores.Row) error) error {
	a := response{kind: kind, stamp: run.stamp(), disposition: `attachment; filename="` + name + `"`}
	return s.send(w, r, a, func(w io.Writer) error {
		rows, err := s.filterRows(run, r)
		if err != nil {
			return err
		}
		return write(w, rows)
	})
}

// A differenceJSON is the difference of two scores in the JSON interface; NaN is null.
type differenceJSON struct {
	A      scores.Row `json:"a"`
	B      scores.Row `json:"b"`
	Value  *float64   `json:"value"`
	Low    *float64   `json:"low"`
	High   *float64   `json:"high"`
	Paired bool       `json:"paired"` // the interval is that of the paired difference
	Beyond bool       `json:"beyond"` // significant: see scores.Difference
}

// A comparisonJSON is a comparison of two runs, A and B, in the JSON interface.
type comparisonJSON struct {
	A           string           `json:"a"`
	B           string           `json:"b"`
	Compared    int              `json:"compared"`  // number of differences
	Beyond      int              `json:"beyond"`    // number of significant ones
	ByChance    int              `json:"by_chance"` // expected number of uncorrected intervals without 0 if nothing differs
	Differences []differenceJSON `json:"differences"`
}

func (s *Server) apiCompare(w http.ResponseWriter, r *http.Request) error {
	sides, err := s.sides(r) // the runs or models that are compared
	if err != nil {
		return err
	}
	return s.send(w, r, response{kind: "application/json", stamp: stampOf(sides)}, func(w io.Writer) error {
		if err := readSides(sides); err != nil {
			return err
		}
		all := r.URL.Query().Get("all") != ""
		out := []comparisonJSON{}
		for _, b := range sides[1:] {
			c := compare(sides[0], b)
			line := comparisonJSON{A: c.A.label(), B: c.B.label(), Compared: len(c.Differences), Beyond: c.Beyond, ByChance: c.byChance(), Differences: []differenceJSON{}}
			for _, d := range c.Differences {
				if all || d.Significant() {
					line.Differences = append(line.Differences, differenceJSON{d.A, d.B, finiteOrNil(d.Value), finiteOrNil(d.Low), finiteOrNil(d.High), d.Paired, d.Significant()})
				}
			}
			out = append(out, line)
		}
		return json.NewEncoder(w).Encode(map[string]any{"comparisons": out})
	})
}
