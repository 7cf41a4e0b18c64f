package spec

import (
	"reflect"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/model/logmel"
)

func TestKaldiFeatures(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]logmel.Settings{
		"kaldi-fbank: {mels: 80, fmax: -400, energy-floor: 0}": {Rate: 16000, Mels: 80, Low: 20, High: -400, Power: 2, Kaldi: &logmel.Kaldi{WindowType: "povey", Preemphasis: 0.97}},
		"kaldi-mfcc: {cepstra: 20, snip-edges: false, remove-mean: false, raw-energy: false, window-type: hamming}": {Rate: 16000, Mels: 23, Low: 20,
			Kaldi: &logmel.Kaldi{Cepstra: 20, WindowType: "hamming", Preemphasis: 0.97, KeepMean: true, Mirror: true, WindowedEnergy: true, EnergyFloor: 1, Lifter: 22}},
	} {
		p, err := ParsePreprocess("p.yaml", "{rate: 16000, features: {"+text+"}}")
		if err != nil || !reflect.DeepEqual(*p.Features, want) {
			t.Errorf("%s: %+v, %v", text, p.Features, err)
		}
	}
	for text, want := range map[string]string{
		"{}":                                 "write one of log-mel, kaldi-fbank and kaldi-mfcc",
		"{log-mel: {}, kaldi-fbank: {}}":     "write one of log-mel, kaldi-fbank and kaldi-mfcc",
		"{kaldi-fbank: {window-type: gaus}}": "gaus",
		"{kaldi-fbank: {cepstra: 13}}":       "cepstra",
	} {
		if _, err := ParsePreprocess("p.yaml", "{rate: 16000, features: "+text+"}"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
