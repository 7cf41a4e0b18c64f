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

// A Record describes a run besides its scores (run.json): what was run, with which versions and
// files, and what was left out. A report is made from rows and a record only. A cell's key is a
// hash of all that its scores depend on.
type Record struct {
	Study       string     `json:"study"`
	Description string     `json:"description,omitempty"` // the study's text for readers; may have several paragraphs
	Seed        uint64     `json:"seed"`
	Noether     string     `json:"noether"` // version of this program
	Started     time.Time  `json:"started"`
	Finished    *time.Time `json:"finished,omitempty"` // absent while the run is in progress
	Cells       int        `json:"cells"`              // number of planned cells
	Done        int        `json:"done"`               // number of finished cells
	// Measures describes the measures of the study. Records of earlier versions have none.
	Measures []measure.Descriptor `json:"measures,omitempty"`
	Models   []ModelRecord        `json:"models"`
	Data     []DataRecord         `json:"data"`
	// Transforms are in the order of the study; records of earlier versions have none.
	Transforms []TransformRecord `json:"transforms,omitempty"`
	Engine     EngineRecord      `json:"engine"`
	Skipped    []Skip            `json:"skipped,omitempty"`
	Missing    []Missing         `json:"missing,omitempty"` // cells that the last merge of partial runs could not complete
	Warnings   []string          `json:"warnings,omitempty"`
	Used       *Resources        `json:"used,omitempty"`    // by the run that wrote the record
	Work       *Work             `json:"work,omitempty"`    // progress of the run that wrote the record
	Failed     []Failure         `json:"failed,omitempty"`  // without logs and inputs, which are in failures/
	Keys       []string          `json:"keys,omitempty"`    // keys of the planned cells; the folder may also hold cells of an earlier study
	Means      []int             `json:"means,omitempty"`   // for each of Keys, the number of its group: cells of a group are averaged over the values of a transformation and over trials
	Records    string            `json:"records,omitempty"` // of a finished run: the CRC-32C of the checksums of the files of the cells in Keys
	Resolved   string            `json:"-"`                 // the text of the resolved study.yaml
	// Files has the checksums of the tables and pictures of a finished run, by name.
	Files map[string]FileSum `json:"files,omitempty"`
}

// Resources describes the process that wrote the record, without earlier and concurrent ones.
type Resources struct {
	Seconds    float64 `json:"seconds"` // from the start of the run
	Stages     []Stage `json:"stages"`
	PeakMemory int64   `json:"peak_memory"` // in bytes
}

// Work counts the samples in forward passes, clean and transformed, without those of earlier runs.
type Work struct {
	Done  int64 `json:"done"`
	Total int64 `json:"total"`
}

// A Stage is the time that a run spent on one kind of work. Samples are prepared while the engine
// runs, so stages add up to more than the total.
type Stage struct {
	Name    string  `json:"stage"`
	Seconds float64 `json:"seconds"`
}

// A ModelRecord identifies a model.
type ModelRecord struct {
	Name   string            `json:"name"`
	Path   string            `json:"path"`
	SHA256 string            `json:"sha256"`
	Opset  int               `json:"opset"` // version of the ONNX operators
	Layers []LayerRecord     `json:"layers"`
	Tags   map[string]string `json:"tags,omitempty"`
	Stated *StatedAccuracy   `json:"stated,omitempty"` // nil: no accuracy is stated for the model
	// Graph has the operations in order of computation; records of earlier versions have none.
	Graph []OperationRecord `json:"graph,omitempty"`
}

// A StatedAccuracy is the accuracy of a model that its file, its card or the study states.
type StatedAccuracy struct {
	Accuracy float64 `json:"accuracy"` // 0 to 1
	By       string  `json:"by"`       // who states it, such as "the metadata of the file"
}

// An OperationRecord describes an operation of a model.
type OperationRecord struct {
	Tensor string `json:"tensor"` // its output; the name of the layer if the layer is measured
	Op     string `json:"op"`
	Reads  []int  `json:"reads"` // indices of the operations whose outputs it reads; empty at the input
	Group  int    `json:"group"` // a drawing shows operations with the same number as one node; they read outputs of their own group and of groups with smaller numbers only
}

// A LayerRecord describes a measured layer.
type LayerRecord struct {
	Name  string `json:"name"`
	Op    string `json:"op"`
	Depth int    `json:"depth"` // operations on the longest path from an input; see tensor.Layer
	Shape []int  `json:"shape"` // of one sample
	Axes  string `json:"axes"`  // one letter for each axis, with the batch axis; see tensor.Axes
	// Branch is true for a layer inside a branch that a shortcut bypasses.
	Branch bool `json:"branch,omitempty"`
}

// A DataRecord identifies a data set.
type DataRecord struct {
	Name        string   `json:"name"`
	Kind        string   `json:"kind"` // the source's key in the study file, for instance "cifar10"
	N           int      `json:"n"`
	Fingerprint string   `json:"fingerprint"`          // hash of the samples
	Unreadable  []string `json:"unreadable,omitempty"` // names of samples that could not be decoded
	// Corruption is the kind without severity; records of earlier versions have none.
	Corruption string `json:"corruption,omitempty"`
	// Benchmark is set if the data are one data set of a benchmark.
	Benchmark *BenchmarkRecord `json:"benchmark,omitempty"`
}

// A BenchmarkRecord says which data set of a benchmark data are.
type BenchmarkRecord struct {
	Name     string `json:"name"`               // such as imagenet-c
	Kind     string `json:"kind"`               // the corruption, clean, or shifted
	Severity int    `json:"severity,omitempty"` // 0: none
	Own      bool   `json:"own,omitempty"`      // the corruption was computed by this program: the images are not the published ones
}

// Units returns the independent units of models and data sets by name; "" for one of its own. Equal
// values of the tag "run" and equal kinds of corruption are one unit.
func (r *Record) Units() (models, data map[string]string) {
	models, data = map[string]string{}, map[string]string{}
	for _, m := range r.Models {
		models[m.Name] = m.Tags["run"]
	}
	for _, d := range r.Data {
		data[d.Name] = d.Corruption
	}
	return models, data
}

// A TransformRecord describes a transformation of the study.
type TransformRecord struct {
	Name string `json:"name"`
	// Parameter is the title of parameters with a list of values, such as "angle (degrees)", or "".
	Parameter string `json:"parameter,omitempty"`
}

// An EngineRecord identifies the engine and the machine that computed the scores.
type EngineRecord struct {
	ONNXRuntime string `json:"onnxruntime"`
	Device      string `json:"device"`
	Adapter     string `json:"adapter,omitempty"` // name of the graphics processor, where a driver tells it
	BLAS        string `json:"blas"`
	JPEG        string `json:"jpeg,omitempty"` // library that decodes JPEG images; "Go" for Go's decoder
	Threads     int    `json:"threads"`
	Machine     string `json:"machine"` // operating system and architecture
}

// A Skip is a measure that did not apply to some model, layer or data, with the reason.
type Skip struct {
	Model   string `json:"model"`
	Layer   string `json:"layer,omitempty"`
	Data    string `json:"data,omitempty"`
	Measure string `json:"measure"`
	Why     string `json:"why"`
}

// A Missing summarises a model's cells that a merge could not complete for the same missing shards.
type Missing struct {
	Model   string   `json:"model"`
	Cells   int      `json:"cells"`
	Shards  []string `json:"shards,omitempty"` // such as "3/4" or "4/4 (unfinished)"; empty if all shards are missing
	Example string   `json:"example"`          // one of the missing cells
}

// WriteRecord writes a record to a file atomically. Resolved is not written.
func WriteRecord(path string, r Record) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return atomicfile.Write(path, appendChecksum(data))
}

// ReadRecord reads a record that WriteRecord wrote. A truncated or altered file, and unknown
// fields, are errors.
func ReadRecord(path string) (Record, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Record{}, err // the error names the path
	}
	r, err := ParseRecord(data)
	if err != nil {
		return Record{}, fmt.Errorf("reading %s: %w", path, err)
	}
	return r, nil
}

// ParseRecord decodes the contents of a file that WriteRecord wrote.
func ParseRecord(data []byte) (Record, error) {
	var in struct {
		Record
		Checksum string `json:"crc32c"`
	}
	if err := decodeStrict(data, &in); err != nil {
		return Record{}, err
	}
	if in.Study == "" {
		return Record{}, errors.New("not a run record: the study name is missing")
	}
	if !validChecksum(data) {
		return Record{}, errAltered
	}
	return in.Record, nil
}

// SameSamples returns the function for Comparison.SameSamples of two runs.
func SameSamples(a, b Record) func(data string) bool {
	fingerprint := func(r Record, name string) string {
		for _, d := range r.Data {
			if d.Name == name {
				return d.Fingerprint
			}
		}
		return ""
	}
	return func(data string) bool {
		return a.Seed == b.Seed && fingerprint(a, data) != "" && fingerprint(a, data) == fingerprint(b, data)
	}
}
