"""The simulated region: everything that stands in for Google Cloud on one machine.

The program never imports this package; it reaches the region only as it reaches the cloud, through the
engine's provider protocol and a kubeconfig.
"""
