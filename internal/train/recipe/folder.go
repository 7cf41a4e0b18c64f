package recipe

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/checkpoint"
	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/internal/train"
	"github.com/noether-ml/noether/onnx"
)

const (
	modelFile      = spec.TrainedModelFile
	logFile        = "log.csv"
	summaryFile    = spec.SummaryFile
	settingsFile   = "training.yaml"
	checkpointFile = "checkpoint.bin"
	epochsFolder   = spec.EpochsFolder
	imagesFolder   = "model.pictures" // shown in reports on model.onnx
)

type folder struct {
	path       string
	finished   *Summary      // results of the same training, if it has finished
	preprocess string        // preprocessing of samples before the network, for its metadata; "": not recorded
	opened     time.Duration // processor time of the process when the folder was opened
}

// cpuSeconds returns the processor time of the process since the folder was opened. A process may
// run several trainings, one after the other.
func (d *folder) cpuSeconds() float64 { return math.Round((machine.CPUTime() - d.opened).Seconds()) }

// openFolder creates the folder, or opens that of the same training. identity is the hash of its
// settings, data and initial weights: a folder with another training is an error.
func openFolder(path string, f *File, identity string) (*folder, error) {
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, err
	}
	d := &folder{path: path, opened: machine.CPUTime()}
	raw, err := os.ReadFile(d.in(summaryFile))
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		var s Summary
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, fmt.Errorf("%s is not the summary of a training: %w", d.in(summaryFile), err)
		}
		if s.Identity != identity {
			return nil, fmt.Errorf("%s holds a training with other settings, data or initial weights: choose another folder", path)
		}
		d.finished = &s
		return d, nil
	}
	return d, atomicfile.Write(d.in(settingsFile), f.text)
}

func (d *folder) in(name string) string { return filepath.Join(d.path, name) }

func (d *folder) checkpoint() checkpoint.File { return checkpoint.File(d.in(checkpointFile)) }

// writeLog writes a row for each epoch. taken_back marks an epoch that was undone, since the loss
// had increased; the objective is the validation loss with its penalty, and the robust accuracy
// that on adversarial examples.
func (d *folder) writeLog(epochs []train.Epoch) error {
	return atomicfile.WriteFunc(d.in(logFile), func(w io.Writer) error {
		c := csv.NewWriter(w)
		c.Write([]string{"epoch", "train_loss", "train_accuracy", "validation_loss", "validation_accuracy", "rate", "seconds", "objective", "taken_back", "validation_robust_accuracy", "validation_mean_iou"})
		for _, e := range epochs {
			c.Write([]string{strconv.Itoa(e.Number), formatFloat(e.Train), formatFloat(e.TrainAccuracy), formatFloat(e.Validation), formatFloat(e.ValidationAccuracy),
				formatFloat(e.Rate), strconv.FormatFloat(e.Seconds, 'f', 1, 64), formatFloat(e.Objective), formatBool(e.RolledBack), formatFloat(e.ValidationRobust), formatFloat(e.ValidationMeanIoU)})
		}
		c.Flush()
		return c.Error()
	})
}

type layerLog []logRow

// A logRow holds the results of an epoch of a layer. train and validation are errors of
// reconstruction (of an autoencoder, train includes the penalties); activity is the mean activation
// of units; rate is the learning rate. objective is the loss of an autoencoder, with its penalties,
// on the validation samples.
type logRow struct {
	layer, epoch                      int     // from 1
	train, validation, activity, rate float64 // validation and activity are 0 if unknown
	objective                         float64 // 0 if unknown
	rolledBack                        bool    // the epoch was undone, since the loss had increased
	time                              float64 // duration in seconds
}

func (l layerLog) last() logRow { return l[len(l)-1] }

func (l layerLog) seconds() (sum float64) {
	for _, row := range l {
		sum += row.time
	}
	return sum
}

func (d *folder) writeLayerLog(log layerLog) error {
	optional := func(v float64) string {
		if v == 0 {
			return ""
		}
		return formatFloat(v)
	}
	return atomicfile.WriteFunc(d.in(logFile), func(w io.Writer) error {
		c := csv.NewWriter(w)
		c.Write([]string{"layer", "epoch", "train_error", "validation_error", "activation", "rate", "seconds", "objective", "taken_back"})
		for _, r := range log {
			c.Write([]string{strconv.Itoa(r.layer), strconv.Itoa(r.epoch), formatFloat(r.train), optional(r.validation), optional(r.activity), formatFloat(r.rate),
				strconv.FormatFloat(r.time, 'f', 1, 64), optional(r.objective), formatBool(r.rolledBack)})
		}
		c.Flush()
		return c.Error()
	})
}

func (d *folder) summary() *Summary {
	if d == nil {
		return nil
	}
	return d.finished
}

func formatBool(yes bool) string {
	if yes {
		return "1"
	}
	return ""
}

func formatFloat(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}

func (d *folder) writeEpoch(number int, m *onnx.Model) error {
	if err := os.MkdirAll(d.in(epochsFolder), 0o777); err != nil {
		return err
	}
	return d.writeModel(filepath.Join(d.in(epochsFolder), fmt.Sprintf("%03d.onnx", number)), m)
}

func (d *folder) writeModel(path string, m *onnx.Model) error {
	if d.preprocess != "" {
		m = m.WithMetadata(spec.PreprocessKey, d.preprocess)
	}
	raw, err := m.Bytes()
	if err != nil {
		return err
	}
	return atomicfile.Write(path, raw)
}

func (d *folder) finish(s *Summary, m *onnx.Model) error {
	if err := d.writeModel(d.in(modelFile), m); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	if err := atomicfile.Write(d.in(summaryFile), append(raw, '\n')); err != nil {
		return err
	}
	if err := os.Remove(d.in(checkpointFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
