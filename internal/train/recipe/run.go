package recipe

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/internal/train"
)

// Options are the options of Run.
type Options struct {
	Runtime *ort.Runtime
	Threads int    // of the engine, ONNX Runtime; 0: one for each core
	Device  string // "cpu" where empty
	// Progress is called after some steps. Optional.
	Progress func(Progress)
	// Epoch is called after each epoch. Optional.
	Epoch func(train.Epoch)
}

// A Progress is the progress of a training.
type Progress struct {
	Name          string // of the training
	Done, Total   int64  // samples, over all epochs
	Epoch, Epochs int    // number of the current epoch, and largest number of epochs
	train.Metrics        // of the epoch so far
}

// A Summary is the content of summary.json: the results of a training.
type Summary struct {
	Name string `json:"name"`
	// Tags are the names of the values of varied keys: those of the training file that have several
	// values, of which each training has one.
	Tags       map[string]string `json:"tags,omitempty"`
	Identity   string            `json:"identity"`   // hash of settings, data and initial weights
	Model      string            `json:"model"`      // name of the file
	Parameters int64             `json:"parameters"` // number of weights
	Samples    int               `json:"samples"`    // training samples
	Epochs     int               `json:"epochs"`     // number of epochs that were run
	Kept       int               `json:"kept"`       // epoch of the network that was saved; Epochs if it is trained layer by layer
	Train      Result            `json:"train"`
	Validation *Result           `json:"validation,omitempty"`
	Test       *Result           `json:"test,omitempty"`
	Layers     []Layer           `json:"layers,omitempty"`   // of a network that is trained layer by layer
	Seconds    float64           `json:"seconds"`            // duration of all epochs
	CPUSeconds float64           `json:"cpu_seconds"`        // processor time; of a resumed training, that of the last process
	Rate       float64           `json:"samples_per_second"` // training samples, over all epochs
	Classes    []string          `json:"classes,omitempty"`  // names of the classes
}

// A Result is the performance of a network on data.
type Result struct {
	Data     string   `json:"data,omitempty"` // fingerprint of the data: a hash of the samples
	Samples  int      `json:"samples"`
	Loss     float64  `json:"loss"`
	Accuracy *float64 `json:"accuracy,omitempty"`        // of samples; for segmentation masks, the mean fraction of pixels
	MeanIoU  *float64 `json:"mean_iou,omitempty"`        // for segmentation masks
	Robust   *float64 `json:"robust_accuracy,omitempty"` // on adversarial examples found as in training
}

func resultOf(fingerprint string, n int, m train.Metrics) *Result {
	r := &Result{Data: fingerprint, Samples: n, Loss: m.Loss}
	if !math.IsNaN(m.Accuracy) {
		r.Accuracy = &m.Accuracy
	}
	if !math.IsNaN(m.MeanIoU) {
		r.MeanIoU = &m.MeanIoU
	}
	return r
}

// withRobust adds the accuracy on adversarial examples, unless it is NaN.
func (r *Result) withRobust(accuracy float64) *Result {
	if !math.IsNaN(accuracy) {
		r.Robust = &accuracy
	}
	return r
}

// Run trains a network as described by the training file and writes the output folder. It resumes
// from a checkpoint of the same training in the folder. If the folder holds the finished training,
// Run returns its summary; if it holds another training, an error.
func Run(ctx context.Context, f *File, folder string, o Options) (*Summary, error) {
	p, err := f.preprocess()
	if err != nil {
		return nil, err
	}
	data, err := f.open(ctx, p)
	if err != nil {
		return nil, err
	}
	defer data.close()
	if f.Network.layerwise() {
		return f.runLayers(ctx, data, p, folder, o)
	}
	n, err := f.network(data, p)
	if err != nil {
		return nil, err
	}
	identity, err := f.identity(data, n)
	if err != nil {
		return nil, err
	}
	dir, err := openFolder(folder, f, identity)
	if err != nil {
		return nil, err
	}
	if done := dir.finished; done != nil {
		return done, nil
	}
	dir.preprocess, _ = spec.PreprocessText(n.recorded) // "" for steps that the text cannot express
	r := &run{File: f, Options: o, data: data, network: n, dir: dir, identity: identity}
	return r.train(ctx)
}

func (f *File) identity(o *datasets, n *network) (string, error) {
	weights, err := n.weights()
	if err != nil {
		return "", err
	}
	settings := *f // fingerprints identify the data, not their paths
	settings.Data, settings.Test, settings.Validation.Data, settings.Save = spec.Data{}, nil, nil, 0
	settings.Network = Network{Autoencoder: f.Network.Autoencoder, CDBN: f.Network.CDBN} // the weights identify the others
	settings.Augment.Transform = nil
	text, err := json.Marshal(struct {
		Settings   File
		Augment    []any
		Train      string
		Validation string
		Parameters []string
		Output     string
		Mode       bool
	}{settings, f.Augment.steps, fingerprintOf(o.train), fingerprintOf(o.validation), n.parameters, n.output, n.trainingMode})
	if err != nil {
		return "", err
	}
	h := sha256.New()
	h.Write(text)
	h.Write(weights)
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

type run struct {
	*File
	Options
	data     *datasets
	network  *network
	dir      *folder
	identity string
	trainer  *train.Trainer
	log      []train.Epoch
}

func (r *run) train(ctx context.Context) (s *Summary, err error) {
	samples := r.stream(r.data.train, withAugmentation)
	perEpoch := (samples.Len() + r.Batch - 1) / r.Batch
	if r.trainer, err = r.newTrainer(perEpoch); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.trainer.Close()) }()
	var validation train.Source
	if r.data.validation != nil {
		validation = r.stream(r.data.validation, withoutAugmentation)
	}
	rollbackFactor, byLoss := r.Rollback.options()
	epochs, err := r.trainer.Fit(ctx, samples, validation, train.FitOptions{
		Epochs: r.Epochs, Batch: r.Batch, Patience: r.Patience, Seed: r.Seed, RollbackFactor: rollbackFactor, RollbackByLoss: byLoss, KeepLast: r.Keep == "last", Checkpoint: r.dir.checkpoint(),
		Identity: r.identity, Resumed: func(e []train.Epoch) error { r.log = e; return nil }, AfterStep: r.reportStep, AfterEpoch: r.recordEpoch,
	})
	if err != nil {
		return nil, err
	}
	return r.finish(ctx, epochs)
}

func (r *run) reportStep(s train.StepProgress) {
	if r.Options.Progress != nil {
		n := int64(s.Total)
		r.Options.Progress(Progress{Name: r.Name, Done: int64(s.Epoch-1)*n + int64(s.Samples), Total: int64(r.Epochs) * n, Epoch: s.Epoch, Epochs: r.Epochs, Metrics: s.Metrics})
	}
}

func (r *run) recordEpoch(e train.Epoch) error {
	r.log = append(r.log, e)
	if err := r.dir.writeLog(r.log); err != nil {
		return err
	}
	if r.Save > 0 && (e.Number == 1 || e.Number%r.Save == 0) {
		m, err := r.network.trained(r.trainer)
		if err != nil {
			return err
		}
		if err := r.dir.writeEpoch(e.Number, m); err != nil {
			return err
		}
	}
	if r.Epoch != nil {
		r.Epoch(e)
	}
	return nil
}

func (r *run) finish(ctx context.Context, epochs []train.Epoch) (*Summary, error) {
	last := epochs[len(epochs)-1]
	s := &Summary{Name: r.Name, Tags: r.tags, Identity: r.identity, Model: modelFile, Samples: r.data.train.Len(), Epochs: last.Number, Kept: lastKeptEpoch(epochs),
		Classes: r.data.classes, CPUSeconds: r.dir.cpuSeconds()}
	if r.data.validation != nil && r.Keep != "last" {
		s.Kept = last.Best
	}
	kept := epochs[s.Kept-1]
	s.Train = *resultOf(r.data.train.Fingerprint(), s.Samples, train.Metrics{Loss: kept.Train, Accuracy: kept.TrainAccuracy, MeanIoU: math.NaN()})
	if r.data.validation != nil {
		s.Validation = resultOf(r.data.validation.Fingerprint(), r.data.validation.Len(), train.Metrics{Loss: kept.Validation, Accuracy: kept.ValidationAccuracy, MeanIoU: kept.ValidationMeanIoU}).withRobust(kept.ValidationRobust)
	}
	if r.data.test != nil {
		metrics, err := r.trainer.Evaluate(ctx, r.stream(r.data.test, withoutAugmentation), r.Batch)
		if err != nil {
			return nil, fmt.Errorf("testing the network: %w", err)
		}
		s.Test = resultOf(r.data.test.Fingerprint(), r.data.test.Len(), metrics)
		if r.Adversarial != nil && s.Test.Accuracy != nil {
			robust, err := r.trainer.EvaluateRobust(ctx, r.stream(r.data.test, withoutAugmentation), r.Batch)
			if err != nil {
				return nil, fmt.Errorf("testing the network on adversarial examples: %w", err)
			}
			s.Test.withRobust(robust)
		}
	}
	for _, e := range epochs {
		s.Seconds += e.Seconds
	}
	s.Rate = math.Round(float64(s.Samples) * float64(last.Number) / s.Seconds)
	s.Seconds = math.Round(s.Seconds*10) / 10
	m, err := r.network.trained(r.trainer)
	if err != nil {
		return nil, err
	}
	s.Parameters = m.Parameters()
	return s, r.dir.finish(s, m)
}

// lastKeptEpoch returns the number of the last epoch whose weights were not discarded by a
// rollback.
func lastKeptEpoch(epochs []train.Epoch) int {
	n := len(epochs)
	for n > 1 && epochs[n-1].RolledBack {
		n--
	}
	return n
}

// fingerprintOf returns the fingerprint of a source; "" for nil.
func fingerprintOf(src dataset.Source) string {
	if src == nil {
		return ""
	}
	return src.Fingerprint()
}
