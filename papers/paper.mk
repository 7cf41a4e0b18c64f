# The rules of the Makefiles of the five papers' folders.
#
#   make -C papers/seis                          trains, measures and makes the tables, at a small scale
#   make -C papers/seis SCALE=paper DEVICE=cuda  the same with the paper's own sizes
#   make -C papers/seis dry-run SCALE=paper      predicts time and memory; names data that are missing
#
# A Makefile calls train for each training file and study for each run. Its target tables makes the
# tables and figures of docs/results, which are those of the small scale. Networks are written to
# networks/SCALE and runs to runs/SCALE; what is finished is not repeated. DATA is the folder of the
# data, which README.md of each paper names.

SCALE ?= small
DATA ?= $(ROOT)/data
ROOT := $(abspath $(dir $(lastword $(MAKEFILE_LIST)))/..)
PAPER := $(notdir $(CURDIR))
NOETHER ?= bin/noether
# $(call timed,STEP) before a command writes its time and memory to the table of the page.
timed = $(if $(SMALL),go run ./papers/internal/timed $(RUNS) papers/results/cost-$(PAPER).csv "$1")
NETWORKS := networks/$(SCALE)
RUNS := runs/$(SCALE)
SMALL := $(filter small,$(SCALE))
# Every file gets the variables of all data; those that it does not name have no effect.
FLAGS = --var SCALE=$(SCALE) $(foreach d,$(DATASETS),--var $d=$(DATA)/$(call lower,$d)) $(if $(DEVICE),--device $(DEVICE))
DATASETS := CIFAR10 CIFAR100 MNIST VOC IMAGENET LIBRISPEECH FSDD VIDEOS CLIPS PICTURES STRINGS MODELS ZOO
lower = $(shell echo $1 | tr A-Z a-z)

.PHONY: all dry-run tables
all: tables

# $(call train,NAME,FLAGS): the training file training/NAME.yaml. OUT_NAME is the folder of its
# networks, if that is not NAME.
out = $(NETWORKS)/$(or $(OUT_$1),$1)
define train
.PHONY: train-$1 predict-$1
train-$1:
	cd $(ROOT) && $(call timed,train $1) $(NOETHER) train papers/$(PAPER)/training/$1.yaml $$(FLAGS) $2 -o $(call out,$1)
predict-$1:
	cd $(ROOT) && $(NOETHER) train papers/$(PAPER)/training/$1.yaml $$(FLAGS) $2 --dry-run
dry-run: predict-$1
tables: train-$1
endef

# $(call study,RUN,NAME,TRAININGS,FLAGS): the study NAME.yaml, of the networks of TRAININGS. Its dry
# run needs them.
define study
.PHONY: run-$1 forecast-$1
run-$1: $(addprefix train-,$3)
	cd $(ROOT) && $(call timed,run $1) $(NOETHER) run papers/$(PAPER)/$2.yaml $$(FLAGS) $4 -o $(RUNS)/$1
forecast-$1:
	@cd $(ROOT) && if $(foreach t,$3,[ -d $(call out,$t) ] &&) true; then \
	$(NOETHER) run papers/$(PAPER)/$2.yaml $$(FLAGS) $4 --dry-run || echo "$1: not predicted"; \
	else echo "$1: to be predicted when $3 is trained"; fi
dry-run: forecast-$1
tables: run-$1
endef
