package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// keepAliveInterval is the interval after which an idle stream sends a comment to keep the
// connection open.
const keepAliveInterval = 15 * time.Second

// events streams the progress of runs as server-sent events: of the runs that the query names, or
// of all unfinished runs. It sends an event "progress" for each run at the start and after each
// change, and an event "end" when all runs are finished or have no readable record.
func (s *Server) events(w http.ResponseWriter, r *http.Request) error {
	runs, err := s.eventRuns(r.URL.Query()["run"])
	if err != nil {
		return err
	}
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	last := map[string]Progress{}
	tick := time.NewTicker(s.options.Every)
	defer tick.Stop()
	lastSent := time.Now()
	for {
		allFinished := true
		for _, run := range runs {
			record, err := run.record()
			if err != nil {
				continue // the record was removed or is damaged
			}
			p := run.progress(record)
			allFinished = allFinished && p.State == finished
			if last[run.id] == p {
				continue
			}
			last[run.id], lastSent = p, time.Now()
			if err := event(w, "progress", p); err != nil {
				return nil // the client has disconnected
			}
		}
		if allFinished {
			event(w, "end", struct{}{})
			return out.Flush()
		}
		if time.Since(lastSent) > keepAliveInterval {
			lastSent = time.Now()
			fmt.Fprint(w, ": still there\n\n")
		}
		if out.Flush() != nil {
			return nil
		}
		select {
		case <-r.Context().Done():
			return nil
		case <-tick.C:
		}
	}
}

func event(w http.ResponseWriter, name string, data any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, raw)
	return err
}

// eventRuns returns the runs with the given ids, or all unfinished runs.
func (s *Server) eventRuns(ids []string) ([]*run, error) {
	if len(ids) == 0 {
		return slices.DeleteFunc(slices.Clone(s.library.runs()), func(r *run) bool {
			record, err := r.record()
			return err != nil || record.Finished != nil
		}), nil
	}
	var runs []*run
	for _, id := range ids {
		run, err := s.library.run(id)
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
	}
	return runs, nil
}
