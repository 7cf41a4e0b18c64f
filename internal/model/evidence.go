package model

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/internal/model/output"
)

// commonClasses are the numbers of classes of the data sets that most classifiers are trained on.
var commonClasses = []int{10, 100, 1000, 1001, 10450, 11821, 21841, 21842, 21843}

// confirmClasses searches for what says that the values of the output that scores classes belong to
// classes at all, which their number alone does not say, or that they do not: a softmax or sigmoid,
// the name of the output, as many names of classes, the model's config.json, or the number of
// classes of a common data set.
func (m *Model) confirmClasses(ctx context.Context) error {
	s := &m.scores
	if s.classes == 0 || s.by != "" {
		return nil
	}
	config, err := readConfig(m.name)
	if err != nil {
		config = &modelConfig{} // ClassNames reports it
	}
	positions, err := m.growsWithInput(ctx)
	if err != nil {
		return err
	}
	switch task := m.properties["task"]; {
	case positions:
		s.none("its size follows from that of the input, so that its values are those of positions")
	case slices.Contains(notClasses, task):
		s.none(fmt.Sprintf("task in the metadata is %s", task))
	case strings.HasSuffix(s.head.after, "Softmax"):
		s.by = s.head.after
	case config.problem() != "":
		s.none("config.json says " + config.problem() + setScores)
	case scoresByName(s.output):
		s.by = "the name of the output"
	case len(output.ParseNames(m.properties["names"])) == s.classes:
		s.by = "names in the metadata"
	case config.without() != "":
		s.none("config.json says " + config.without() + setScores)
	case config.classifies(s.classes):
		s.by = configBeside
	case slices.Contains(commonClasses, s.classes):
		s.by = fmt.Sprintf("their number, %d", s.classes)
	case s.head.after != "": // several sigmoids may also be positions or quantities: see DoubtsOf
		s.by = s.head.after
	}
	return nil
}

// configBeside is what says that values are those of classes if the file config.json does.
const configBeside = "config.json"

// setScores ends a sentence that says why an output scores no classes.
const setScores = "; if it scores classes, set scores: logits or scores: probabilities"

// doubtClasses decides on an output that neither the graph nor the values of noise confirm. It
// scores no classes if it looks like features, if it is computed from audio, of which such outputs
// hold the pitch, the level or the quality, or if it is as long as a feature vector. Any other is
// taken for classes, with a doubt.
func (m *Model) doubtClasses() {
	const features = 64 // the sizes of feature vectors are multiples of this one
	s := &m.scores
	switch {
	case s.classes == 0 || s.by != "" || m.source == nil:
	case s.head.features:
		s.none("no layer with weights computes it from features, and nothing says that it scores classes" + setScores)
	case m.TakesAudio():
		s.none(fmt.Sprintf("nothing says that its %d values score classes, neither a softmax nor a name%s", s.classes, setScores))
	case s.classes%features == 0:
		s.none(fmt.Sprintf("its %d values are as many as a feature vector has, and nothing says that they score classes%s", s.classes, setScores))
	}
}

// notClasses are the tasks in the metadata of Ultralytics' models whose outputs are no class scores
// of the whole image.
var notClasses = []string{"detect", "segment", "pose", "obb"}

// growsWithInput reports whether an output of free size has more values for longer audio, as one
// that has a value for each frame.
func (m *Model) growsWithInput(ctx context.Context) (bool, error) {
	i := slices.IndexFunc(m.outputs, func(p engine.Port) bool { return p.Name == m.scores.output })
	if !m.TakesAudio() || m.scores.single || len(m.outputs[i].Shape) < 2 || m.outputs[i].Shape[1].Size >= 0 || waveLength(m.input.info) >= 0 {
		return false, nil
	}
	longer := *m
	longer.input.width *= 2
	found, err := m.net.Layers(ctx, longer.setup())
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil { // it takes audio of this length only
		return false, nil
	}
	shape := found.Outputs[m.scores.output]
	return len(shape) == 0 || shape[0] != m.scores.classes, nil
}

// problem returns the problem that the model is trained on, if its values are no scores of classes
// that exclude each other, or "".
func (c *modelConfig) problem() string {
	switch c.Problem {
	case "regression":
		return "problem_type: regression"
	case "multi_label_classification":
		return "problem_type: multi_label_classification, whose classes do not exclude each other"
	}
	return ""
}

// without returns what says that the model scores no classes, or "".
func (c *modelConfig) without() string {
	if len(c.Architectures) == 0 {
		return ""
	}
	a := c.Architectures[0]
	for _, end := range []string{"Model", "Backbone", "Encoder", "WithProjection"} {
		if strings.HasSuffix(a, end) {
			return "architectures: " + a
		}
	}
	if strings.Contains(a, "For") && !strings.Contains(a, "Classification") {
		return "architectures: " + a
	}
	return ""
}

// classifies reports whether the model scores n classes.
func (c *modelConfig) classifies(n int) bool {
	if len(c.Architectures) > 0 && strings.Contains(c.Architectures[0], "Classification") {
		return true
	}
	return len(c.Labels) == n || c.Classes == n || c.TimmClasses == n
}
