{{- define "muster.name" -}}
{{- if contains "muster" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-muster{{ end }}
{{- end }}

{{- define "muster.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "muster.name" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "muster.selector" -}}
app.kubernetes.io/name: muster
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end }}

{{- define "muster.labels" -}}
{{ include "muster.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* image: {repository, tag, digest}, chart: .Chart */}}
{{- define "muster.image" -}}
{{ .image.repository }}{{ if .image.digest }}@{{ .image.digest }}{{ else }}:{{ .image.tag | default .chart.AppVersion }}{{ end }}
{{- end }}

{{- /* Who may ask replicas for their metrics and progress, as NetworkPolicyPeers in JSON. */}}
{{- define "muster.httpPeers" -}}
{{- $name := "kubernetes.io/metadata.name" }}
{{- $own := dict "namespaceSelector" (dict "matchLabels" (dict $name .Release.Namespace)) }}
{{- $_ := set $own "podSelector" (dict "matchLabels" (include "muster.selector" . | fromYaml)) }}
{{- $peers := list $own }}
{{- range .Values.security.networkPolicy.monitoringNamespaces }}
{{- $peers = append $peers (dict "namespaceSelector" (dict "matchLabels" (dict $name .))) }}
{{- end }}
{{- toJson $peers }}
{{- end }}

{{- /* What the operator does in the namespaces of jobs. */}}
{{- define "muster.rules" -}}
- apiGroups: [muster.dev]
  resources: [trainingjobs]
  verbs: [get, list, watch, delete]
- apiGroups: [muster.dev]
  resources: [trainingjobs/status]
  verbs: [update]
- apiGroups: [muster.dev]
  resources: [trainingjobs/finalizers]
  verbs: [update]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, watch, create{{ if .Values.tfjob.enabled }}, patch{{ end }}]
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
{{- if .Values.tfjob.enabled }}
- apiGroups: [muster.dev]
  resources: [trainingjobs]
  verbs: [create, update]
- apiGroups: [kubeflow.org]
  resources: [tfjobs]
  verbs: [get, list, watch, delete]
- apiGroups: [kubeflow.org]
  resources: [tfjobs/status]
  verbs: [update]
{{- end }}
{{- if .Values.kueue.enabled }}
- apiGroups: [kueue.x-k8s.io]
  resources: [workloads]
  verbs: [get, list, watch, create, update, delete]
- apiGroups: [kueue.x-k8s.io]
  resources: [workloads/status]
  verbs: [update]
{{- end }}
{{- if .Values.security.networkPolicy.enabled }}
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, create, patch]
{{- end }}
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, create, patch]
- apiGroups: [scheduling.volcano.sh, scheduling.x-k8s.io]
  resources: [podgroups]
  verbs: [get, create, patch]
- apiGroups: [""]
  resources: [events]
  verbs: [get, list, create, patch]
{{- /* Whether one answers whose pods do not end. */}}
{{- if not .Values.watchNamespaces }}
- apiGroups: [""]
  resources: [nodes]
  verbs: [get]
{{- end }}
{{- end }}
