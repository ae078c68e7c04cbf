"""The components of the program: one class a file, from the network to the queues.

Owns every resource that a stack registers. A component is told what to build by its frozen `…Args` and says
what it built by its outputs; it never reads settings, the stack's name, the environment or a credential.
Imports `facts` and the Pulumi SDKs only; `__main__.py` alone joins components with settings.
"""
