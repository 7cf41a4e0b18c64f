package probe

import (
	"errors"
	"fmt"
	"sync"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/train"
)

// trainers are those of probes that are done, to be taken again for probes of the same form: to prepare one takes as long as dozens of
// its steps. Several goroutines may use them.
type trainers struct {
	most int // that are idle

	mutex sync.Mutex
	idle  []trainer // the one that came last is the last
}

type trainer struct {
	form string
	*train.Trainer
}

// form tells probes apart whose graphs differ in more than the weights.
func (p *problem) form() string {
	return fmt.Sprint(p.kind, p.hidden, p.in.width(), p.in.condition != nil, p.outputs(), p.loss().Name)
}

// take is an idle trainer of a form, started again with the weights of net, or else what make makes.
func (l *trainers) take(form string, net *onnx.Model, make func() (*train.Trainer, error)) (*train.Trainer, error) {
	if t := l.find(form); t != nil {
		if err := t.Restart(net); err != nil {
			return nil, errors.Join(err, t.Close())
		}
		return t, nil
	}
	return make()
}

func (l *trainers) find(form string) *train.Trainer {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for i, t := range l.idle {
		if t.form == form {
			l.idle = append(l.idle[:i:i], l.idle[i+1:]...)
			return t.Trainer
		}
	}
	return nil
}

// put gives a trainer back. Where there are too many, the one that has been idle for the longest is closed.
func (l *trainers) put(form string, t *train.Trainer) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.idle = append(l.idle, trainer{form, t})
	if len(l.idle) <= l.most {
		return nil
	}
	oldest := l.idle[0]
	l.idle = l.idle[1:]
	return oldest.Close()
}

// close ends all that are idle.
func (l *trainers) close() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	var errs []error
	for _, t := range l.idle {
		errs = append(errs, t.Close())
	}
	l.idle = nil
	return errors.Join(errs...)
}
