package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"

	"github.com/noether-ml/noether/report"
	"github.com/noether-ml/noether/report/html"
)

// mostKept is how many bytes of pages are kept, those asked for last.
const mostKept = 64 << 20

// kept holds what was made of runs, as long as their files are as they were.
type kept struct {
	most int

	mutex sync.Mutex
	made  map[string]*made
	size  int
	clock int
}

type made struct {
	mutex sync.Mutex // held while it is made: others that ask for it wait
	stamp string
	text  []byte
	used  int
}

func newKept(most int) *kept { return &kept{most: most, made: map[string]*made{}} }

// get returns what is kept under a name, if it was made of files with the same stamp; else it is
// made now.
func (k *kept) get(name, stamp string, make func() ([]byte, error)) ([]byte, error) {
	m := k.entry(name)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.text != nil && m.stamp == stamp {
		return m.text, nil
	}
	text, err := make()
	if err != nil {
		return nil, err
	}
	k.put(name, m, stamp, text)
	return text, nil
}

func (k *kept) entry(name string) *made {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	m := k.made[name]
	if m == nil {
		m = &made{}
		k.made[name] = m
	}
	k.clock++
	m.used = k.clock
	return m
}

// put keeps a text and forgets those that were asked for longest ago, until all fit. Texts change
// under both locks, so either will do to read them.
func (k *kept) put(name string, m *made, stamp string, text []byte) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.forget(name)
	m.stamp, m.text = stamp, text
	k.made[name] = m
	k.size += len(text)
	for k.size > k.most {
		k.forget(k.oldest())
	}
}

func (k *kept) oldest() string {
	var oldest string
	for name, m := range k.made {
		if oldest == "" || m.used < k.made[oldest].used {
			oldest = name
		}
	}
	return oldest
}

func (k *kept) forget(name string) {
	if m := k.made[name]; m != nil {
		k.size -= len(m.text)
		delete(k.made, name)
	}
}

// stamp tells the files of a run apart from what they were: their sizes, and when they were
// written.
func (r *run) stamp() string {
	var b strings.Builder
	look := func(name string) {
		if info, err := r.root.open.Stat(path.Join(r.path, name)); err == nil {
			fmt.Fprintf(&b, "%s %d %d\n", name, info.Size(), info.ModTime().UnixNano())
		}
	}
	for _, name := range []string{"run.json", "study.yaml", "scores.csv", "cells", "samples.parquet", "units.parquet", "curves.parquet"} {
		look(name)
	}
	fs.WalkDir(r.root.open.FS(), path.Join(r.path, "pictures"), func(name string, _ fs.DirEntry, err error) error {
		if err == nil {
			look(strings.TrimPrefix(name, r.path+"/"))
		}
		return nil
	})
	return b.String()
}

// A summary is what the page of a run says of its scores.
type summary struct {
	Scores   int
	Findings []string
}

func (s *Server) summary(r *run) (summary, error) {
	var out summary
	text, err := s.kept.get("summary "+r.id, r.stamp(), func() ([]byte, error) {
		record, err := r.record()
		if err != nil {
			return nil, err
		}
		rows, err := r.rows(record)
		if err != nil {
			return nil, err
		}
		return json.Marshal(summary{len(rows), report.Findings(rows, record.Measures)})
	})
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	return out, err
}

// report is the page of a run's report.
func (s *Server) report(r *run) ([]byte, error) {
	return s.kept.get("report "+r.id, r.stamp(), func() ([]byte, error) {
		record, rows, err := r.whole()
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		err = html.Run{Rows: rows, Record: record, Attachments: r.attachments()}.WritePage(&b, "")
		return b.Bytes(), err
	})
}
