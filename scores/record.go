package scores

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/measure"
)

// A Record is what a run folder says of itself besides its scores (run.json): what was run, with
// which versions, on which bytes, and what was left out. A report is made from rows and a record
// alone.
type Record struct {
	Study    string     `json:"study"`
	Seed     uint64     `json:"seed"`
	Noether  string     `json:"noether"` // version of this program
	Started  time.Time  `json:"started"`
	Finished *time.Time `json:"finished,omitempty"` // absent while the run is going on
	Cells    int        `json:"cells"`              // cells planned
	Done     int        `json:"done"`               // cells finished
	// Measures describe the measures of the study. Records of earlier versions have none.
	Measures []measure.Descriptor `json:"measures,omitempty"`
	Models   []ModelRecord        `json:"models"`
	Data     []DataRecord         `json:"data"`
	Engine   EngineRecord         `json:"engine"`
	Skipped  []Skip               `json:"skipped,omitempty"`
	Missing  []Missing            `json:"missing,omitempty"` // what the last merge could not complete
	Warnings []string             `json:"warnings,omitempty"`
	Used     *Resources           `json:"used,omitempty"`   // by the run that wrote the record
	Failed   []Failure            `json:"failed,omitempty"` // without their logs and inputs, which failures/ keeps
	Keys     []string             `json:"keys,omitempty"`   // of the cells planned: the folder may hold others of an earlier study
	Means    []int                `json:"means,omitempty"`  // for each key the number of the means that its cell may enter: over the values of a transformation, over trials
	Resolved string               `json:"-"`                // the text of study.yaml as resolved
}

// Resources are what a run has used: the process that wrote the record, not those before it or
// beside it.
type Resources struct {
	Seconds    float64 `json:"seconds"` // from the start of the run
	Stages     []Stage `json:"stages"`
	PeakMemory int64   `json:"peak_memory"` // bytes in memory at most
}

// A Stage is the time that a run has spent on one kind of work. Samples are decoded and transformed
// beside the engine, so that stages add up to more than the whole.
type Stage struct {
	Name    string  `json:"stage"`
	Seconds float64 `json:"seconds"`
}

// A ModelRecord identifies a model.
type ModelRecord struct {
	Name   string            `json:"name"`
	Path   string            `json:"path"`
	SHA256 string            `json:"sha256"`
	Opset  int               `json:"opset"`
	Layers []LayerRecord     `json:"layers"`
	Tags   map[string]string `json:"tags,omitempty"`
}

// A LayerRecord describes a measured layer.
type LayerRecord struct {
	Name  string `json:"name"`
	Op    string `json:"op"`
	Depth int    `json:"depth"`
	Shape []int  `json:"shape"` // of one sample
	Axes  string `json:"axes"`
}

// A DataRecord identifies a data set.
type DataRecord struct {
	Name        string   `json:"name"`
	Kind        string   `json:"kind"` // the source's key in the study file, for instance "cifar10"
	N           int      `json:"n"`
	Fingerprint string   `json:"fingerprint"`
	Unreadable  []string `json:"unreadable,omitempty"` // samples that did not decode
}

// An EngineRecord says what computed the scores.
type EngineRecord struct {
	ONNXRuntime string `json:"onnxruntime"`
	Device      string `json:"device"`
	BLAS        string `json:"blas"`
	Threads     int    `json:"threads"`
	Machine     string `json:"machine"` // operating system and architecture
}

// A Skip is a measure that did not apply somewhere, and why.
type Skip struct {
	Model   string `json:"model"`
	Layer   string `json:"layer,omitempty"`
	Data    string `json:"data,omitempty"`
	Measure string `json:"measure"`
	Why     string `json:"why"`
}

// A Missing sums up cells of a model that a merge could not complete for want of the same shards.
type Missing struct {
	Model   string   `json:"model"`
	Cells   int      `json:"cells"`
	Shards  []string `json:"shards,omitempty"` // such as "3/4", "4/4 (unfinished)"; none where every shard is missing
	Example string   `json:"example"`          // one of the cells
}

// WriteRecord writes a record to a file, whole or not at all. Resolved is not part of it.
func WriteRecord(path string, r Record) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return atomicfile.Write(path, append(data, '\n'))
}

// ReadRecord reads a record that WriteRecord wrote. A file that is cut short or has other fields is
// an error.
func ReadRecord(path string) (Record, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Record{}, err // names the path
	}
	r, err := ParseRecord(data)
	if err != nil {
		return Record{}, fmt.Errorf("reading %s: %w", path, err)
	}
	return r, nil
}

// ParseRecord is ReadRecord of what stands in a file.
func ParseRecord(data []byte) (Record, error) {
	var r Record
	if err := strict(data, &r); err != nil {
		return Record{}, err
	}
	if r.Study == "" {
		return Record{}, errors.New("no record of a run: it does not name a study")
	}
	return r, nil
}

// SameSamples returns what a Comparison of two runs wants to know: whether a data set of a name
// holds the same samples in the same order in both.
func SameSamples(a, b Record) func(data string) bool {
	print := func(r Record, name string) string {
		for _, d := range r.Data {
			if d.Name == name {
				return d.Fingerprint
			}
		}
		return ""
	}
	return func(data string) bool {
		return a.Seed == b.Seed && print(a, data) != "" && print(a, data) == print(b, data)
	}
}
