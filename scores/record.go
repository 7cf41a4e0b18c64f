package scores

import "time"

// A Record is what a run folder says of itself besides its scores (run.json): what was run, with which versions, on
// which bytes, and what was left out. A report is made from rows and a record alone.
type Record struct {
	Study    string        `json:"study"`
	Noether  string        `json:"noether"` // version of this program
	Started  time.Time     `json:"started"`
	Finished *time.Time    `json:"finished,omitempty"` // absent while the run is going on
	Cells    int           `json:"cells"`              // cells planned
	Done     int           `json:"done"`               // cells finished
	Models   []ModelRecord `json:"models"`
	Data     []DataRecord  `json:"data"`
	Engine   EngineRecord  `json:"engine"`
	Skipped  []Skip        `json:"skipped,omitempty"`
	Warnings []string      `json:"warnings,omitempty"`
	Resolved string        `json:"-"` // the text of study.yaml as resolved
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
