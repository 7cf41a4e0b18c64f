package probe

import (
	"errors"
	"fmt"
	"sync"

	"github.com/noether-ml/noether/internal/train"
	"github.com/noether-ml/noether/onnx"
)

// A trainerPool keeps the trainers of finished probes (small networks trained on the vectors of a
// layer) for other probes of the same architecture: preparing a trainer takes as long as dozens of
// its steps. It is safe for concurrent use.
type trainerPool struct {
	capacity int // largest number of idle trainers

	mutex sync.Mutex
	idle  []trainer // in the order in which they were returned
}

// A trainer is a train.Trainer for probes of one architecture.
type trainer struct {
	architecture string
	*train.Trainer
}

// architecture returns a string that is equal for probes whose graphs differ only in their weights.
// With a condition, the input has the parameter of the transformation besides the layer's vector.
func (p *probeSpec) architecture() string {
	return fmt.Sprint(p.kind, p.hidden, p.input.width(), p.input.condition != nil, p.outputs(), p.loss().Name)
}

// get returns an idle trainer of an architecture, restarted with the weights of net. If there is
// none, it returns the result of create.
func (l *trainerPool) get(architecture string, net *onnx.Model, create func() (*train.Trainer, error)) (*train.Trainer, error) {
	if t := l.find(architecture); t != nil {
		if err := t.Restart(net); err != nil {
			return nil, errors.Join(err, t.Close())
		}
		return t, nil
	}
	return create()
}

// find removes an idle trainer of an architecture from the pool and returns it, or nil.
func (l *trainerPool) find(architecture string) *train.Trainer {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for i, t := range l.idle {
		if t.architecture == architecture {
			l.idle = append(l.idle[:i:i], l.idle[i+1:]...)
			return t.Trainer
		}
	}
	return nil
}

// put returns a trainer to the pool. If there are too many, the one that has been idle longest is
// closed.
func (l *trainerPool) put(architecture string, t *train.Trainer) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.idle = append(l.idle, trainer{architecture, t})
	if len(l.idle) <= l.capacity {
		return nil
	}
	oldest := l.idle[0]
	l.idle = l.idle[1:]
	return oldest.Close()
}

// close closes all idle trainers.
func (l *trainerPool) close() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	var errs []error
	for _, t := range l.idle {
		errs = append(errs, t.Close())
	}
	l.idle = nil
	return errors.Join(errs...)
}
